import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as eab from "../../../operations/Eab.ts"
import { eabFile, mostOverApi } from "../../../operations/Exports.ts"
import { credentialObject } from "../../../operations/Objects.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { Api } from "../Api.ts"
import { answering } from "../ApiRefusals.ts"
import { fileAnswer } from "./File.ts"
import { paged, windowOf } from "./Paging.ts"
import { operator } from "./RequestCaller.ts"

/** Credentials of external account binding. */
export const eabHandlers = (config: Config) =>
  HttpApiBuilder.group(Api, "eab", (handlers) =>
    handlers
      .handle("listCredentials", ({ query: { status, ...page } }) => {
        const window = windowOf(page, config.admin.page_size_max)
        return answering(Effect.map(eab.list({ status, ...window }), (found) => paged(found, credentialObject, window)))
      })
      .handleRaw("exportCredentials", ({ query: { format = "csv", status } }) =>
        answering(Effect.gen(function*() {
          const made = yield* eabFile({ status }, { format, most: mostOverApi })
          return yield* fileAnswer("eab", format, made)
        })))
      .handle("createCredential", ({ payload: { label, profile } }) =>
        answering(Effect.gen(function*() {
          const wanted = yield* eab.checkRequest(config, { label, profile: profile ?? undefined })
          const { credential, secret } = yield* eab.create(yield* operator, wanted)
          return { ...credentialObject(credential), hmacKey: Buffer.from(secret).toString("base64url") }
        })))
      .handle("readCredential", ({ params: { kid } }) => answering(Effect.map(eab.find(kid), credentialObject)))
      .handle(
        "revokeCredential",
        ({ params: { kid } }) => answering(Effect.asVoid(Effect.flatMap(operator, (by) => eab.revoke(by, kid))))
      )
      .handle(
        "deleteCredential",
        ({ params: { kid }, query: { accounts = "keep" } }) =>
          answering(Effect.flatMap(operator, (by) => eab.remove(by, kid, accounts)))
      ))
