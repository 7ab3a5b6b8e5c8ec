import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, inject } from "vitest"
import { createPostgresDatabase, dropPostgresDatabase } from "./Postgres.ts"

const askRun = async (service: "postgres" | "build"): Promise<string> => {
  const response = await fetch(`${inject("runServices")}/${service}`, { method: "POST" })
  const text = await response.text()
  if (!response.ok) throw new Error(`the test run could not provide ${service}: ${text}`)
  return text
}

const cleanups: Array<() => Promise<void> | void> = []

afterAll(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

/** The URL of a PostgreSQL database nobody else uses; it is dropped when the test file has ended. */
export const freshPostgresUrl = async (): Promise<string> => {
  const adminUrl = await askRun("postgres")
  const url = await createPostgresDatabase(adminUrl)
  cleanups.push(() => dropPostgresDatabase(adminUrl, url))
  return url
}

/** A temporary directory, removed when the test file has ended. */
export const freshDirectory = (): string => {
  const directory = mkdtempSync(join(tmpdir(), "acme-test-"))
  cleanups.push(() => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }))
  return directory
}

/** The URL of a SQLite file that does not exist yet, in a temporary directory. */
const freshSqliteUrl = (): Promise<string> => Promise.resolve(`sqlite://${join(freshDirectory(), "acme.db")}`)

/** Both database backends, for `describe.each(databases)("… on $name", ({ freshUrl }) => …)`. */
export const databases = [
  { name: "SQLite", dialect: "sqlite", freshUrl: freshSqliteUrl },
  { name: "PostgreSQL", dialect: "postgres", freshUrl: freshPostgresUrl }
] as const

/** Waits until `dist/main.js` has been built from the tree, once per test run. */
export const builtServer = async (): Promise<void> => {
  await askRun("build")
}
