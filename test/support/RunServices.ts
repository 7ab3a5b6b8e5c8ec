import { execFile } from "node:child_process"
import { createServer } from "node:http"
import { resolve } from "node:path"
import { promisify } from "node:util"
import type { PostgresCluster } from "./Postgres.ts"
import { startPostgres } from "./Postgres.ts"

const repository = resolve(import.meta.dirname, "../..")

/** Runs `npm run build`, so that `dist/main.js` is built from the tree under test. */
const buildServer = async (): Promise<void> => {
  await promisify(execFile)("npm", ["run", "--silent", "build"], { cwd: repository })
}

/**
 * Starts the services that all files of a test run share, since test files run in several processes. Each service is
 * started at most once, at the first request. `POST /postgres` returns the admin URL of the cluster. `POST /build` is
 * answered once the server is built.
 */
export const startRunServices = async (): Promise<{ readonly url: string; readonly stop: () => Promise<void> }> => {
  let cluster: Promise<PostgresCluster> | undefined
  let build: Promise<void> | undefined

  const answer = async (path: string | undefined): Promise<string> => {
    switch (path) {
      case "/postgres":
        cluster ??= startPostgres()
        return (await cluster).adminUrl
      case "/build":
        build ??= buildServer()
        await build
        return "built"
      default:
        throw new Error(`no such run service: ${path}`)
    }
  }

  const server = createServer((request, response) => {
    // A test that runs a program to its end has no turn of its event loop meanwhile, so it could use an idle connection
    // that this server is just closing.
    response.setHeader("connection", "close")
    answer(request.url).then(
      (text) => response.end(text),
      (error: unknown) => {
        response.statusCode = 500
        response.end(String(error))
      }
    )
  })
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  const address = server.address()
  if (address === null || typeof address === "string") throw new Error("the run services have no TCP address")

  return {
    url: `http://127.0.0.1:${address.port}`,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
      if (cluster !== undefined) await cluster.then((started) => started.stop(), () => undefined)
    }
  }
}
