import * as Effect from "effect/Effect"
import type { JsonAnswer, JsonGet } from "../../../kernel/net/JsonGet.ts"
import { InventoryFailed } from "./Inventory.ts"

/** How a backend sends one request to its server: a path below the configured URL, a query and headers. */
export type Ask = (
  path: string,
  query: ReadonlyArray<readonly [string, string]>,
  headers: { readonly [name: string]: string }
) => Effect.Effect<JsonAnswer, InventoryFailed>

const maxBytes = 1_048_576

/** Asks over HTTP. */
export const askOver = (
  client: JsonGet["Service"],
  config: { readonly url: string; readonly insecure_skip_verify: boolean },
  roots: ReadonlyArray<string>
): Ask =>
(path, query, headers) => {
  const url = new URL(`${config.url.replace(/\/+$/, "")}/${path}`)
  for (const [name, value] of query) url.searchParams.append(name, value)
  return Effect.mapError(
    client.get({ url, headers, roots, anyCertificate: config.insecure_skip_verify, maxBytes }),
    ({ detail }) => new InventoryFailed({ detail })
  )
}
