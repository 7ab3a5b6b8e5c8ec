import { commandsIn } from "../../support/Documents.ts"
import { guideOf } from "./Guide.ts"

/* The sections of the guides that are carried out, and what must be true afterwards. */

/** A section that is carried out unchanged. */
export interface Recipe {
  readonly document: string
  readonly heading: string
  /** The programs that the section needs. */
  readonly commands: ReadonlyArray<string>
  /** The state that the section requires, as shell commands. */
  readonly before?: ReadonlyArray<string>
  /** Shell commands that fail unless the section has had its effect. */
  readonly holds: ReadonlyArray<string>
  /**
   * The command that later renews the certificate automatically, and a file whose first certificate must have been
   * replaced then.
   */
  readonly later?: { readonly line: string; readonly certificate: string }
  /** Whether the other machines start as copies of this one, so that their hosts trust the CA. */
  readonly isGround?: true
}

const name = "web1.example.org"
const root = "/usr/local/share/ca-certificates/acme-svc.crt"

const verifies = (file: string, host = name): ReadonlyArray<string> => [
  `openssl verify -CAfile ${root} -untrusted ${file} -verify_hostname ${host} ${file}`
]

/** Connects with the trusted CAs of this host, and tries again until a connection succeeds. */
const shows = `curl --silent --show-error --retry 60 --retry-delay 1 --retry-all-errors https://${name}/ > /dev/null`

/** Returns the command that cron would run. */
const cron = (file: string): string =>
  `sed -n 's/^[0-9].* root  *//p' /etc/cron.d/${file} > /run/line && sh -eu /run/line`

/** The command that the timer of Debian's certbot starts. */
const certbotTimer = "$(sed -n 's/^ExecStart=//p' /lib/systemd/system/certbot.service)"

const certbotFile = `/etc/letsencrypt/live/${name}/fullchain.pem`

const ofPage = (page: string, heading: string, recipe: Omit<Recipe, "document" | "heading">): Recipe => ({
  document: `docs/clients/${page}.md`,
  heading,
  ...recipe
})

const ofTrust = (heading: string, recipe: Omit<Recipe, "document" | "heading">): Recipe =>
  ofPage("trust", heading, recipe)

/** All recipes. The one on which the others depend comes first. */
export const recipes: ReadonlyArray<Recipe> = [
  ofTrust("Debian and Ubuntu", {
    commands: ["update-ca-certificates", "curl", "openssl"],
    holds: ["curl --fail --silent --show-error https://acme.example.org/profile/default/directory"],
    isGround: true
  }),
  ofPage("apache", "Apache with mod_md", {
    commands: ["a2enmod"],
    // Otherwise Apache waits for ten seconds.
    before: ["echo MDInitialDelay 0s > /etc/apache2/conf-enabled/at-once.conf"],
    holds: [
      "tail --follow=name --retry --lines=+1 /var/log/apache2/error.log | grep --max-count=1 AH10059",
      cron("apache-md"),
      shows
    ]
  }),
  ofPage("certbot", "certbot", {
    commands: ["certbot"],
    holds: verifies(certbotFile),
    later: { line: certbotTimer, certificate: "/etc/ssl/private/fullchain.pem" }
  }),
  ofPage("certbot", "certbot with dns-01", {
    commands: ["certbot", "python3-certbot-dns-rfc2136"],
    holds: [...verifies(certbotFile), ...verifies(certbotFile, `other.${name}`)]
  }),
  ofPage("certbot", "nginx", {
    commands: ["certbot", "nginx", "python3-certbot-nginx"],
    holds: [...verifies(certbotFile), shows],
    later: { line: certbotTimer, certificate: certbotFile }
  }),
  ofPage("certbot", "HAProxy", {
    commands: ["certbot", "haproxy"],
    before: ["(cd /srv && exec /usr/bin/python3 -m http.server --bind 127.0.0.1 8080) > /dev/null 2>&1 &"],
    holds: [shows],
    later: { line: certbotTimer, certificate: `/etc/haproxy/certs/${name}.pem` }
  }),
  ofPage("small-clients", "dehydrated", {
    commands: ["dehydrated", "nginx"],
    // Otherwise dehydrated makes a longer account key, which takes seconds.
    before: ["systemctl start nginx", "echo ACCOUNT_KEYSIZE=2048 > /etc/dehydrated/conf.d/account.sh"],
    holds: verifies(`/var/lib/dehydrated/certs/${name}/fullchain.pem`),
    later: { line: cron("dehydrated"), certificate: `/var/lib/dehydrated/certs/${name}/fullchain.pem` }
  }),
  ofPage("caddy", "Caddy", { commands: ["caddy"], holds: [shows] }),
  ofPage("small-clients", "uacme", {
    commands: ["nginx", "uacme"],
    before: ["systemctl start nginx"],
    holds: verifies(`/etc/ssl/uacme/${name}/cert.pem`),
    later: { line: cron("uacme"), certificate: `/etc/ssl/uacme/${name}/cert.pem` }
  }),
  ofPage("lego", "lego", {
    commands: ["lego"],
    holds: verifies(`/etc/lego/certificates/${name}.crt`),
    later: { line: cron("lego"), certificate: `/etc/ssl/private/${name}.crt` }
  }),
  ofPage("libraries", "acme-client of Node.js", {
    commands: ["nginx"],
    before: [
      "systemctl start nginx",
      "mkdir -p /srv/acme",
      "ln -s \"$REPOSITORY/node_modules\" /srv/acme/node_modules"
    ],
    holds: verifies(`/srv/acme/${name}.pem`)
  }),
  ofPage("libraries", "acme of Python", {
    commands: ["nginx", "python3-acme"],
    before: ["systemctl start nginx"],
    holds: verifies(`/etc/ssl/private/${name}.pem`)
  }),
  ofTrust("The fingerprint", { commands: ["openssl"], before: [`cp ${root} ca.pem`], holds: [] }),
  ofTrust("Name constraints", {
    commands: ["openssl"],
    holds: [
      "node \"$REPOSITORY/dist/main.js\" init",
      ...["web1.corp.example", "web1.elsewhere.example"].flatMap((host) => [
        `openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj / -addext subjectAltName=DNS:${host} -keyout key -out csr`,
        `openssl x509 -req -in csr -copy_extensions copy -CA ca.pem -CAkey ca.key -days 2 -out ${host}.pem`
      ]),
      "openssl verify -CAfile ca.pem web1.corp.example.pem",
      "if openssl verify -CAfile ca.pem web1.elsewhere.example.pem; then exit 1; fi"
    ]
  }),
  ofTrust("Java", {
    commands: ["keytool"],
    holds: ["keytool -list -cacerts -storepass changeit -alias acme-svc | grep -F \"$FINGERPRINT\""]
  }),
  ofTrust("Chrome and Chromium on Linux", {
    commands: ["certutil"],
    holds: [
      `certutil -d "sql:$HOME/.pki/nssdb" -L -n acme-svc -a | openssl x509 -noout -fingerprint -sha256 | grep -F "$FINGERPRINT"`
    ]
  }),
  ofTrust("Node.js", { commands: [], holds: [] }),
  ofTrust("Python", { commands: ["python3-requests"], holds: [] }),
  ofTrust("curl and other programs of OpenSSL", { commands: ["curl", "openssl"], holds: [] })
]

/** The commands of the documents that a recipe runs. */
export const guideLines: ReadonlyArray<string> = recipes.flatMap(({ document, heading }) =>
  (guideOf(document).get(heading) ?? []).flatMap(({ body, kind }) => kind === "shell" ? commandsIn(body) : [])
)
