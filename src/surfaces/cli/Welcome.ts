import type { Config } from "../../settings/AppConfig.ts"

/**
 * Renders the next steps for a new user: the directory for clients, the certificate to trust, and two commands to
 * paste.
 */
export const renderWelcome = (config: Config, absolute: (path: string) => string): string => {
  const [profile] = config.profiles.filter(({ enabled }) => enabled)
  if (profile === undefined) return ""
  const { base_url, tls } = config.server
  const directory = `${base_url}/profile/${profile.name}/directory`
  const { port } = profile.challenge.http_01
  const trusted = tls.enabled ? absolute(tls.cert_path) : undefined
  const certbotTrust = trusted === undefined ? "" : `REQUESTS_CA_BUNDLE='${trusted}' `
  const legoTrust = trusted === undefined ? "" : `LEGO_CA_CERTIFICATES='${trusted}' `
  return [
    "",
    "acme-svc is ready.",
    "",
    `  Directory       ${directory}`,
    `  CA certificate  ${absolute(profile.signer.local_ca.cert_path)}`,
    ...(trusted === undefined ? [] : [`  Server's own    ${trusted} (self-signed unless you replaced it)`]),
    "",
    "A first certificate, in a second terminal, with certbot or with lego:",
    "",
    `  ${certbotTrust}certbot certonly --non-interactive --agree-tos --register-unsafely-without-email ` +
    `--standalone --http-01-port ${port} --config-dir demo-certbot --work-dir demo-certbot/work ` +
    `--logs-dir demo-certbot/logs --server ${directory} -d demo.localhost`,
    "",
    `  ${legoTrust}lego --accept-tos --email you@example.org --path demo-lego --server ${directory} ` +
    `--http --http.port :${port} --domains demo.localhost run`,
    "",
    ""
  ].join("\n")
}
