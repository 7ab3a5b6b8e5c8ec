import { Validator } from "@seriousme/openapi-schema-validator"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { OpenApiDocument } from "../../support/Documented.ts"
import { makeDocumented, schemasOf } from "../../support/Documented.ts"
import { runCommand } from "../Command.ts"

/* Tools that read the OpenAPI document. Every warning counts as an error here. */

/**
 * The linter Spectral, which is installed only for the run, because with its dependencies it has 68 MB, more than the
 * other tools together.
 */
const spectral = "@stoplight/spectral-cli@6.16.3"

const rules = (file: string): string => join(import.meta.dirname, file)

/** Installs the tool that is not a dependency. Returns its program, and a function that removes the tool. */
export const installSpectral = async (say: (text: string) => void) => {
  const directory = mkdtempSync(join(tmpdir(), "acme-spectral-"))
  say(`installing ${spectral} with npm`)
  const words = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", directory, spectral]
  // The caller's environment says where npm finds its registry, and which CAs it trusts for the registry.
  const env = Object.fromEntries(Object.entries(process.env).map(([name, value]) => [name, value ?? ""]))
  await runCommand("npm", words, { cwd: directory, env, timeoutMs: 600_000 })
  return {
    program: join(directory, "node_modules/.bin/spectral"),
    remove: () => rmSync(directory, { recursive: true, force: true })
  }
}

/** Runs Redocly's linter on a file. Every message counts as an error. */
export const lintByRedocly = async (file: string): Promise<void> => {
  const env = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" }
  const words = ["lint", "--config", rules("redocly.yaml"), "--max-problems", "1000", file]
  const said = await runCommand("redocly", words, { env })
  if (/You have \d+ warning/.test(said) || !said.includes("Your API description is valid")) throw new Error(said)
}

/** Runs Spectral's linter on a file. Even a hint counts as an error. */
export const lintBySpectral = async (program: string, file: string): Promise<void> => {
  await runCommand(program, ["lint", "--ruleset", rules("spectral.yaml"), "--fail-severity", "hint", file])
}

/** Checks a document against the schema of OpenAPI 3.1. */
export const validateDocument = async (document: OpenApiDocument): Promise<void> => {
  const validator = new Validator()
  // The validator resolves references in place.
  const { errors, valid } = await validator.validate(structuredClone({ ...document }))
  if (!valid) throw new Error(JSON.stringify(errors, undefined, 2))
  if (validator.version !== "3.1") throw new Error(`it was held to ${validator.version}`)
}

const idsIn = (value: unknown): ReadonlyArray<string> => {
  if (typeof value !== "object" || value === null) return []
  const own = "$id" in value && typeof value.$id === "string" ? [value.$id] : []
  return [...own, ...Object.values(value).flatMap(idsIn)]
}

/** Compiles every schema of a document, and returns their number. */
export const compileSchemas = async (document: OpenApiDocument): Promise<void> => {
  const ids = idsIn(document)
  const twice = ids.filter((id, at) => ids.indexOf(id) !== at)
  if (twice.length > 0) throw new Error(`schemas of one id: ${twice.join(", ")}`)
  const { compile } = makeDocumented(document)
  for (const steps of schemasOf(document)) compile(steps)
}
