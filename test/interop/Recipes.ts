import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import type { Foreground } from "./Command.ts"
import { startForeground } from "./Command.ts"

/*
 * Programs that run the recipes of docs/recipes/ for the forwarder that the relay's http01 needs on port 80. Each
 * recipe is unchanged except for ports, addresses and the file of trusted CAs.
 */

/** The values that a recipe needs in this run. */
export interface Site {
  /** The port of the forwarder, instead of port 80. */
  readonly port: number
  /** The port of the service on 127.0.0.1. */
  readonly backend: number
  /**
   * The certificate that the service must show. If this is left out, the forwarder speaks plain HTTP to the service.
   */
  readonly trust: string | undefined
  /** A directory for everything that the program writes. */
  readonly directory: string
}

type Edit = readonly [from: string | RegExp, to: string]

/** A program with a recipe. */
export interface Forwarder {
  readonly name: string
  readonly command: string
  readonly recipe: string
  /** Replaces port 80 and the service's address and name. */
  readonly here: (site: Site) => ReadonlyArray<Edit>
  /** The changes that the recipe describes for a service that speaks TLS. They are applied before {@link here}. */
  readonly overTls: ReadonlyArray<Edit>
  /** Runs the forwarder in the foreground, with the text of the recipe. */
  readonly run: (recipe: string, site: Site) => Promise<Foreground>
}

const uncommented: Edit = [/^( *)#(?=[^ \n])/gm, "$1"]

const certificate = ({ trust }: Site): ReadonlyArray<Edit> =>
  trust === undefined ? [] : [["/etc/ssl/acme-svc.pem", trust]]
const address = ({ backend }: Site): Edit => ["192.0.2.10:3000", `127.0.0.1:${backend}`]

const nginx: Forwarder = {
  name: "nginx",
  command: "nginx",
  recipe: "forward-http01.nginx.conf",
  here: (site) => [
    ["listen 80 ", `listen 127.0.0.1:${site.port} `],
    ["listen [::]:80 ", `listen 127.0.0.2:${site.port} `],
    address(site),
    ...certificate(site),
    ["acme.example.org", "localhost"]
  ],
  overTls: [["proxy_pass http:", "proxy_pass https:"], uncommented],
  run: (recipe, { directory }) => {
    const main = join(directory, "nginx.conf")
    const parts = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    writeFileSync(
      main,
      [
        "daemon off;",
        "error_log stderr notice;",
        `pid ${directory}/nginx.pid;`,
        "events {}",
        "http {",
        "access_log off;",
        ...parts.map((part) => `${part}_temp_path ${directory}/${part};`),
        `include ${recipe};`,
        "}",
        ""
      ].join("\n")
    )
    const words = ["-e", "stderr", "-p", directory, "-c", main]
    return startForeground("nginx", words, { cwd: directory, ready: /start worker process \d/ })
  }
}

const haproxy: Forwarder = {
  name: "HAProxy",
  command: "haproxy",
  recipe: "forward-http01.haproxy.cfg",
  here: (site) => [
    ["bind :80", `bind 127.0.0.1:${site.port}`],
    ["bind [::]:80 v6only", `bind 127.0.0.2:${site.port}`],
    address(site),
    ...certificate(site),
    ["acme.example.org", "localhost"]
  ],
  overTls: [[/^ {4}server .*\n/m, ""], uncommented],
  run: (recipe, { directory }) =>
    startForeground("haproxy", ["-V", "-db", "-f", recipe], { cwd: directory, ready: /polling mechanism/ })
}

const modules = ["mpm_event", "authz_core", "headers", "proxy", "proxy_http", "reqtimeout", "rewrite", "socache_shmcb"]

const apache: Forwarder = {
  name: "Apache",
  command: "apache2",
  recipe: "forward-http01.apache.conf",
  here: (site) => [
    ["*:80", `127.0.0.1:${site.port}`],
    ...site.trust === undefined ? [address(site)] : certificate(site),
    ["acme.example.org:3000", `localhost:${site.backend}`]
  ],
  overTls: [[/^Define .*\n/m, ""], uncommented],
  run: (recipe, { directory, port, trust }) => {
    const main = join(directory, "apache.conf")
    writeFileSync(
      main,
      [
        ...[...modules, ...trust === undefined ? [] : ["ssl"]].map((module) =>
          `LoadModule ${module}_module /usr/lib/apache2/modules/mod_${module}.so`
        ),
        `ServerRoot ${directory}`,
        "ServerName localhost",
        `PidFile ${directory}/apache.pid`,
        `Mutex file:${directory}`,
        `ErrorLog "|/bin/cat"`,
        ...process.getuid?.() === 0 ? ["User nobody", "Group nogroup"] : [],
        `Listen 127.0.0.1:${port}`,
        `Include ${recipe}`,
        ""
      ].join("\n")
    )
    const ready = /resuming normal operations/
    return startForeground("apache2", ["-f", main, "-D", "FOREGROUND"], { cwd: directory, ready })
  }
}

/** All forwarders. */
export const forwarders: ReadonlyArray<Forwarder> = [nginx, haproxy, apache]

const edited = (text: string, edits: ReadonlyArray<Edit>): string =>
  edits.reduce((before, [from, to]) => {
    const after = typeof from === "string" ? before.replaceAll(from, to) : before.replace(from, to)
    if (after === before) throw new Error(`the recipe has nothing like ${from}:\n${before}`)
    return after
  }, text)

const accepts = (port: number): Promise<boolean> =>
  new Promise((done) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("error", () => done(false))
    socket.once("connect", () => {
      socket.destroy()
      done(true)
    })
  })

/** Starts a forwarder in front of `backend`, and stops it after `use`. */
export const forwarding = async <A>(
  { here, overTls, recipe, run }: Forwarder,
  to: Omit<Site, "directory">,
  use: () => Promise<A>
): Promise<A> => {
  const directory = mkdtempSync(join(tmpdir(), "acme-forwarder-"))
  try {
    const site = { ...to, directory }
    const text = readFileSync(resolve(import.meta.dirname, "../../docs/recipes", recipe), "utf8")
    const file = join(directory, recipe)
    writeFileSync(file, edited(edited(text, site.trust === undefined ? [] : overTls), here(site)))
    const running = await run(file, site)
    try {
      while (!await accepts(site.port)) await wait(20)
      return await use()
    } finally {
      await running.stop()
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
