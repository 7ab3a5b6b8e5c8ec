import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { freePort } from "../../support/Ports.ts"
import { runCommand, startForeground } from "../Command.ts"

/* Two TLS servers that require certificates of their clients: nginx of Debian, and `openssl s_server`. */

/** The files of a certificate, with its chain, and of its key. */
export interface Pair {
  readonly certificate: string
  readonly key: string
}

/** What both servers need: a folder to write in, their name, their certificate, and the CA of their clients. */
export interface Site {
  readonly directory: string
  readonly host: string
  readonly own: Pair
  readonly caFile: string
}

/** Connects with a client certificate, and returns the answer of the server, or the alert that ends the connection. */
export type Visit = (client: Pair) => Promise<string>

/** A server that is running. */
export interface Guard {
  readonly visit: Visit
  /** Waits until the log of the server has a line like this. */
  readonly says: (pattern: RegExp) => Promise<void>
  readonly stop: () => Promise<void>
}

/** Requests a page with `openssl s_client`, which accepts the server only with the right name below the CA. */
const visitAt = (port: number, { caFile, host }: Site): Visit => (client) => {
  const words = ["-quiet", "-connect", `127.0.0.1:${port}`, "-servername", host, "-verify_hostname", host]
  const files = ["-CAfile", caFile, "-cert", client.certificate, "-key", client.key]
  const page = `GET / HTTP/1.0\\r\\nHost: ${host}\\r\\n\\r\\n`
  const script = `printf '${page}' | openssl s_client "$@"`
  return runCommand("sh", ["-c", script, "sh", ...words, "-verify_return_error", ...files]).catch(String)
}

/** Starts nginx with `ssl_verify_client on`. */
export const startNginx = async (site: Site): Promise<Guard> => {
  const { caFile, directory, host, own } = site
  const port = await freePort()
  const main = join(directory, "nginx.conf")
  const parts = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
  writeFileSync(
    main,
    [
      "daemon off;",
      "error_log stderr info;",
      `pid ${directory}/nginx.pid;`,
      "events {}",
      "http {",
      "access_log off;",
      ...parts.map((part) => `${part}_temp_path ${directory}/${part};`),
      "server {",
      `listen 127.0.0.1:${port} ssl;`,
      `server_name ${host};`,
      `ssl_certificate ${own.certificate};`,
      `ssl_certificate_key ${own.key};`,
      "ssl_verify_client on;",
      `ssl_client_certificate ${caFile};`,
      "return 200 \"client $ssl_client_verify\\n\";",
      "}",
      "}",
      ""
    ].join("\n")
  )
  const words = ["-e", "stderr", "-p", directory, "-c", main]
  const nginx = await startForeground("nginx", words, { cwd: directory, ready: /start worker process \d/ })
  return { visit: visitAt(port, site), says: nginx.waitFor, stop: nginx.stop }
}

/** Starts `openssl s_server`, which requires a certificate and refuses a wrong one. */
export const startSServer = async (site: Site): Promise<Guard> => {
  const { caFile, directory, own } = site
  const port = await freePort()
  const files = ["-cert", own.certificate, "-key", own.key, "-CAfile", caFile, "-no-CApath", "-no-CAstore"]
  const words = ["s_server", "-accept", `127.0.0.1:${port}`, ...files, "-Verify", "1", "-verify_return_error", "-www"]
  const server = await startForeground("openssl", words, { cwd: directory, ready: /^ACCEPT/ })
  return { visit: visitAt(port, site), says: server.waitFor, stop: server.stop }
}
