import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Entropy } from "../../crypto/Entropy.ts"
import { trustOf } from "../../domain/ClientAddress.ts"
import { filesBelow } from "../../engine/host/Files.ts"
import { bind } from "../../engine/http/Listener.ts"
import { Loops } from "../../engine/Loops.ts"
import { make } from "../../surfaces/docs/DocsApp.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { Host } from "../Host.ts"
import { command } from "./Descriptor.ts"
import { numberFlag } from "./Flags.ts"

const host = "127.0.0.1"
const maxConnections = 64
const requestTimeoutMillis = 10_000

const notBuilt = new CommandFailed({
  code: 3,
  message: "The documents are not beside this program. In a clone, npm run site makes them."
})

const serving = (port: number) =>
  Effect.gen(function*() {
    const { process } = yield* Host
    const found = yield* Effect.mapError(filesBelow(process.site), () => notBuilt)
    const files = new Map(found.map(({ name, path }) => [name, path]))
    if (!files.has("index.html")) return yield* notBuilt
    const listener = yield* Effect.mapError(
      bind({ name: "docs", host, port, sharing: "nobody", maxConnections }),
      ({ message }) => new CommandFailed({ code: 1, message })
    )
    yield* listener.serve({
      app: make(files),
      own: new Map(),
      watch: undefined,
      ...trustOf([]),
      tls: undefined,
      requestTimeoutMillis,
      maxBodyBytes: 0,
      maxBodies: maxConnections
    })
    yield* Console.log(`The documents are at http://${listener.address}/ until Ctrl-C.`)
    yield* process.stopSignal
    yield* listener.drain
  })

/** `docs`: serves the documents that the package brings, on loopback. */
export const docsCommand = command(
  "docs",
  "Serve the documents to a browser on this machine, until Ctrl-C; it needs no configuration, no database and no network. Example: acme-svc docs --port 8080. Exit codes: 0 stopped, 1 the port is taken, 2, 3 the documents are not there.",
  {
    port: numberFlag("port", { least: 0, most: 65_535, of: "a port" }).pipe(
      Flag.withDefault(0),
      Flag.withDescription("The port on 127.0.0.1. With 0, any free port.")
    )
  },
  ({ port }) => Effect.provide(Effect.scoped(serving(port)), Layer.merge(Entropy.layer, Loops.layer))
)
