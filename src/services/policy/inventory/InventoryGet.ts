import * as Effect from "effect/Effect"
import type { JsonAnswer, JsonGet } from "../../../kernel/net/JsonGet.ts"
import { InventoryFailed } from "./Inventory.ts"

/** A query in the order in which it is sent. */
export type Query = ReadonlyArray<readonly [name: string, value: string]>

/** The server of an inventory. Paths are below its configured URL. */
export interface InventoryServer {
  /** Contains no secret: those go into headers. */
  readonly urlOf: (path: string, query: Query) => URL
  readonly get: (
    path: string,
    query: Query,
    headers: { readonly [name: string]: string }
  ) => Effect.Effect<JsonAnswer, InventoryFailed>
}

const maxBytes = 1_048_576

/** A server that is asked over HTTP. */
export const serverOver = (
  client: JsonGet["Service"],
  config: { readonly url: string; readonly insecure_skip_verify: boolean },
  roots: ReadonlyArray<string>
): InventoryServer => {
  const urlOf = (path: string, query: Query) => {
    const url = new URL(`${config.url.replace(/\/+$/, "")}/${path}`)
    for (const [name, value] of query) url.searchParams.append(name, value)
    return url
  }
  return {
    urlOf,
    get: (path, query, headers) =>
      Effect.mapError(
        client.get({ url: urlOf(path, query), headers, roots, anyCertificate: config.insecure_skip_verify, maxBytes }),
        ({ detail }) => new InventoryFailed({ detail })
      )
  }
}
