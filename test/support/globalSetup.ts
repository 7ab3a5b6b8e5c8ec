import type { TestProject } from "vitest/node"
import { startRunServices } from "./RunServices.ts"

declare module "vitest" {
  export interface ProvidedContext {
    /** The URL of the services that the whole run shares ({@link startRunServices}). */
    readonly runServices: string
    /** Whether both databases are used (`databases`). */
    readonly everyDatabase: boolean
  }
}

/**
 * Lets every test file request the shared PostgreSQL cluster and the built server, which are not started without a
 * request.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const services = await startRunServices()
  project.provide("runServices", services.url)
  return services.stop
}
