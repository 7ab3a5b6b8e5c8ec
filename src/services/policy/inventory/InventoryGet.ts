import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { JsonAnswer, JsonGet } from "../../../engine/net/JsonGet.ts"
import { InventoryFailed } from "./Inventory.ts"

/** The parameters of a query, in the order in which they are sent. */
export type Query = ReadonlyArray<readonly [name: string, value: string]>

/** One request: a path below the configured URL, and a query. */
export interface Asked {
  readonly path: string
  readonly query?: Query
}

/**
 * The server of an inventory. The text of its failures names the URL and quotes the answer, but never contains the
 * token.
 */
export interface InventoryServer {
  /** Returns the product and the URL to which a request is sent, for operators. */
  readonly placeOf: (asked: Asked) => string
  readonly get: (
    asked: Asked,
    headers: { readonly [name: string]: string }
  ) => Effect.Effect<JsonAnswer, InventoryFailed>
  /** Returns the failure for an answer that cannot be used. `remedy` says what an operator can check. */
  readonly unusable: (asked: Asked, answer: JsonAnswer, fault: string, remedy?: string) => InventoryFailed
}

/** The product, and the section of the configuration with the keys of the product. */
interface Product {
  readonly name: string
  readonly section: string
}

interface ServerConfig {
  readonly url: string
  readonly token: Redacted.Redacted<string>
  readonly insecure_skip_verify: boolean
}

const maxBytes = 1_048_576
const longestExcerpt = 200

/** Makes a server that is queried over HTTP. */
export const serverOver = (
  client: JsonGet["Service"],
  { name, section }: Product,
  config: ServerConfig,
  roots: ReadonlyArray<string>
): InventoryServer => {
  const token = Redacted.value(config.token).trim()
  const urlOf = ({ path, query = [] }: Asked): URL => {
    const url = new URL(`${config.url.replace(/\/+$/, "")}/${path}`)
    for (const [key, value] of query) url.searchParams.append(key, value)
    return url
  }
  const placeOf = (asked: Asked) => `${name} at ${urlOf(asked).href}`
  const failed = (asked: Asked, fault: string, excerpt = "", remedy?: string) => {
    // The token is masked before the excerpt is shortened. Otherwise a part of the token could remain at the end.
    const masked = token === "" ? excerpt : excerpt.replaceAll(token, "***")
    const said = excerpt === "" ? fault : `${fault}: ${masked.slice(0, longestExcerpt)}`
    return new InventoryFailed({ detail: `${placeOf(asked)} ${said}${remedy === undefined ? "" : `; ${remedy}`}` })
  }
  return {
    placeOf,
    get: (asked, headers) =>
      Effect.mapError(
        client.get({
          url: urlOf(asked),
          headers,
          roots,
          rootsKey: `${section}.ca_cert_path`,
          anyCertificate: config.insecure_skip_verify,
          maxBytes
        }),
        ({ detail, excerpt }) =>
          excerpt === undefined || excerpt === ""
            ? failed(asked, detail)
            : failed(asked, detail, excerpt, `is ${section}.url right?`)
      ),
    unusable: (asked, { excerpt }, fault, remedy) => failed(asked, fault, excerpt, remedy)
  }
}

/**
 * Returns the failure for an answer whose status does not mean success. `ofToken` says how the token was sent, which
 * differs between products.
 */
export const refusedBy = (
  server: InventoryServer,
  asked: Asked,
  answer: JsonAnswer,
  { ofToken, section }: { readonly section: string; readonly ofToken: string }
): InventoryFailed => {
  const { status } = answer
  const isOfToken = status === 401 || status === 403
  const isElsewhere = status === 404 || (status >= 300 && status <= 399)
  const remedy = isOfToken
    ? `look at ${section}.token: ${ofToken}`
    : isElsewhere
    ? `is ${section}.url right?`
    : undefined
  return server.unusable(asked, answer, `answers with status ${status}`, remedy)
}
