import SqliteDatabase from "better-sqlite3"
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { Client } from "pg"
import { AcmeSession } from "../support/AcmeSession.ts"
import type { OpenApiDocument, Received } from "../support/Documented.ts"
import { makeDocumented, operationsOf } from "../support/Documented.ts"
import { freePort } from "../support/Ports.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, runToEnd, startServer } from "../support/Server.ts"
import { runCommand } from "./Command.ts"
import { compileSchemas, installSpectral, lintByRedocly, lintBySpectral, validateDocument } from "./openapi/Tools.ts"
import type { Outcome } from "./Table.ts"

/*
 * Compares the API of operators with its OpenAPI document. Linters and validators read the document. A program is
 * compiled with types that are made from the document, and is run with the service. Every answer that the program got
 * is compared with the document.
 */

const name = "openapi"
const password = "Wrocław tramway, 4 stops"
const repository = resolve(import.meta.dirname, "../..")
const programs = join(import.meta.dirname, "openapi/program")

/** Every status that the program must meet. */
const statuses = [200, 201, 204, 400, 401, 403, 404, 405, 409, 413, 415, 429, 503]

const bypassing = "[challenge]\nbypass = true"

interface Settings {
  readonly port: number
  /** The directory of the service that issues the certificates of a second profile. */
  readonly upstream: string
  readonly isFactorDemanded: boolean
}

const configOf = ({ isFactorDemanded, port, upstream }: Settings): string =>
  [
    bypassing,
    "[admin]",
    "enabled = true",
    `bind_address = "127.0.0.1:${port}"`,
    `base_url = "http://127.0.0.1:${port}"`,
    `require_mfa = ${isFactorDemanded}`,
    "[notify]",
    "enabled = [\"custom\"]",
    "custom_enabled = [\"reader\"]",
    "[notify.custom.reader]",
    "script_path = \"/bin/cat\"",
    minimalConfig,
    "[profiles.relayed]",
    "enabled = true",
    "[profiles.relayed.signer]",
    "backend = \"relay\"",
    "[profiles.relayed.signer.relay]",
    `directory_url = "${upstream}"`,
    "account_key_path = \"relayed.key\"",
    "challenge_strategy = \"bypass\"",
    "poll_interval_ms = 50"
  ].join("\n")

interface Place {
  readonly server: Server
  readonly databaseUrl: string | undefined
  readonly baseUrl: string
  /** The folder of the program, with the types and everything that the program writes. */
  readonly home: string
}

const makeOperators = async ({ databaseUrl, server: { directory } }: Place): Promise<void> => {
  writeFileSync(join(directory, "password"), `${password}\n`, { mode: 0o600 })
  const env = databaseUrl === undefined ? {} : { ACME_SVC_DATABASE__URL: databaseUrl }
  for (const [username, role] of [["ann", "admin"], ["otto", "operator"], ["vera", "viewer"]] as const) {
    const words = ["admin", "user", "create", username, "--role", role, "--password-file", "password"]
    const { code, stderr } = await runToEnd(words, { config: null, directory, env })
    if (code !== 0) throw new Error(`${username} was not made: ${stderr}`)
  }
}

/** Gets a relayed certificate, and makes two accounts with two certificates each. */
const issue = async ({ server }: Place): Promise<void> => {
  const relayed = await AcmeSession.open(server.profileUrl("relayed"))
  await relayed.register()
  await relayed.issue(["relayed.example"], new Map())
  relayed.close()
  for (const host of ["one.example", "two.example"]) {
    const session = await AcmeSession.open(server.directoryUrl)
    await session.register()
    for (const names of [[host], [host, `www.${host}`]]) await session.issue(names, new Map())
    session.close()
  }
}

const fetchDocument = async ({ baseUrl }: Place): Promise<OpenApiDocument> => {
  const headers = { "content-type": "application/json" }
  const body = JSON.stringify({ username: "vera", password })
  const signedIn = await fetch(`${baseUrl}/api/session`, { method: "POST", headers, body })
  const cookie = signedIn.headers.getSetCookie()[0]?.split(";")[0] ?? ""
  const answer = await fetch(`${baseUrl}/api/openapi.json`, { headers: { cookie } })
  if (!answer.ok) throw new Error(`the document was answered with ${answer.status}`)
  return await answer.json() as OpenApiDocument
}

/** Makes the types, and compiles the program with them. */
const compile = async (home: string, file: string): Promise<void> => {
  for (const one of readdirSync(programs)) copyFileSync(join(programs, one), join(home, one))
  writeFileSync(join(home, "package.json"), "{\"type\":\"module\"}")
  symlinkSync(join(repository, "node_modules"), join(home, "node_modules"))
  await runCommand("openapi-typescript", [file, "--output", join(home, "document.ts")])
  await runCommand("tsc", ["--project", home], { cwd: home })
}

interface Step {
  readonly name: string
  readonly milliseconds: number
  readonly error?: string
}

/** Runs the program and returns its steps. A failure names the step at which the program failed. */
const run = async ({ baseUrl, home }: Place, ...words: ReadonlyArray<string>): Promise<ReadonlyArray<Step>> => {
  const env = { BASE_URL: baseUrl, PASSWORD: password, ANSWERS: join(home, "answers") }
  const stepsIn = (text: string) =>
    text.split("\n").filter((line) => line.startsWith("{")).map((line): Step => JSON.parse(line))
  const said = await runCommand(process.execPath, [join(home, "main.ts"), ...words], { cwd: home, env }).catch((
    error
  ) => String(error))
  const steps = stepsIn(said)
  if (steps.length === 0) throw new Error(said)
  return steps
}

/** Makes the service read another configuration. */
const reload = async ({ server }: Place, settings: Settings): Promise<void> => {
  const reloads = server.records().filter(({ fields }) => fields["event"] === "server_config_reloaded").length
  writeFileSync(join(server.directory, "config.toml"), configOf(settings))
  server.signal("SIGHUP")
  await server.waitForEvent("server_config_reloaded", { where: ({ fields }) => fields["generation"] === reloads + 1 })
}

/** Locks the database while `use` runs, so that nothing can be written or no attempt can be counted. */
const whileHeld = async <A>({ databaseUrl, server }: Place, use: () => Promise<A>): Promise<A> => {
  if (databaseUrl === undefined) {
    const database = new SqliteDatabase(join(server.directory, "sqlite.db"))
    database.exec("BEGIN IMMEDIATE")
    return use().finally(() => database.close())
  }
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  await client.query("BEGIN")
  await client.query("LOCK TABLE login_attempts IN ACCESS EXCLUSIVE MODE")
  return use().finally(() => client.end())
}

/** Compares the answers with the document, and returns how many there were. */
const holdAnswers = (document: OpenApiDocument, { home }: Place): string => {
  const { faultOf } = makeDocumented(document)
  const answers = readFileSync(join(home, "answers"), "utf8").trim().split("\n").map((line): Received =>
    JSON.parse(line)
  )
  const faults = answers.flatMap((answer) => {
    const fault = faultOf(answer)
    return fault === undefined ? [] : [`${answer.method} ${answer.pattern} ${answer.status}: ${fault}\n${answer.text}`]
  })
  if (faults.length > 0) throw new Error(faults.join("\n").slice(0, 6000))
  const met = new Set(answers.map(({ status }) => status))
  const missing = statuses.filter((status) => !met.has(status))
  if (missing.length > 0) throw new Error(`no answer had the status ${missing.join(", ")}`)
  const routes = new Set(answers.map(({ method, pattern }) => `${method} ${pattern}`))
  const unmet = operationsOf(document).map(({ method, pattern }) => `${method} ${pattern}`)
    .filter((route) => !routes.has(route))
  if (unmet.length > 0) throw new Error(`nothing was asked of ${unmet.join(", ")}`)
  return `${answers.length} answers of all ${routes.size} routes, with ${met.size} statuses`
}

const playOn = async (
  database: string,
  databaseUrl: string | undefined,
  { say, spectral }: { readonly say: (text: string) => void; readonly spectral: string }
): Promise<ReadonlyArray<Outcome>> => {
  const outcomes: Array<Outcome> = []
  const told = ({ error, milliseconds, name: scenario }: Step) => {
    const outcome = { database, client: name, challenge: "", scenario, milliseconds }
    outcomes.push(error === undefined ? outcome : { ...outcome, error })
    if (error !== undefined) say(`--- ${name}: ${scenario} on ${database}\n${error}\n---`)
  }
  const timed = async (scenario: string, play: () => Promise<unknown>) => {
    const begun = performance.now()
    const error = await play().then(() => undefined, (cause: unknown) => String(cause))
    const step = { name: scenario, milliseconds: performance.now() - begun }
    told(error === undefined ? step : { ...step, error })
  }
  const [home, port] = [mkdtempSync(join(tmpdir(), "acme-openapi-")), await freePort()]
  const upstream = await startServer({ config: `${bypassing}\n${minimalConfig}` })
  const settings: Settings = { port, upstream: upstream.directoryUrl, isFactorDemanded: false }
  const server = await startServer({ config: configOf(settings), ...databaseUrl === undefined ? {} : { databaseUrl } })
  const place: Place = { server, databaseUrl, baseUrl: `http://127.0.0.1:${port}`, home }
  try {
    await makeOperators(place)
    await issue(place)
    const document = await fetchDocument(place)
    const file = join(home, "openapi.json")
    writeFileSync(file, JSON.stringify(document, undefined, 2))
    await timed("lint by Redocly", () => lintByRedocly(file))
    await timed("lint by Spectral", () => lintBySpectral(spectral, file))
    await timed("schema of OpenAPI 3.1", () => validateDocument(document))
    await timed("every schema by Ajv", () => compileSchemas(document))
    await timed("types and program compile", () => compile(home, file))
    await reload(place, { ...settings, isFactorDemanded: true })
    for (const step of await run(place, "forced")) told(step)
    await reload(place, settings)
    for (const step of await run(place)) told(step)
    for (const step of await whileHeld(place, () => run(place, "busy"))) told(step)
    await timed("every answer fits", async () => say(`${database}: ${holdAnswers(document, place)}`))
  } finally {
    await server.dispose()
    await upstream.dispose()
    rmSync(home, { recursive: true, force: true })
  }
  return outcomes
}

/** Plays the whole program on SQLite and on PostgreSQL. */
export const playOpenApi = async (
  createDatabase: () => Promise<string>,
  say: (text: string) => void
): Promise<ReadonlyArray<Outcome>> => {
  const { program: spectral, remove } = await installSpectral(say)
  try {
    return [
      ...await playOn("SQLite", undefined, { say, spectral }),
      ...await playOn("PostgreSQL", await createDatabase(), { say, spectral })
    ]
  } finally {
    remove()
  }
}
