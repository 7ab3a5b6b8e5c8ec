import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AccountsMode } from "../../../domain/Audit.ts"
import { BadRequest } from "../../../domain/OperatorError.ts"
import * as eab from "../../../operations/operator/Eab.ts"
import * as deletion from "../../../operations/operator/EabDeletion.ts"
import { eabFile } from "../../../operations/operator/Exports.ts"
import { formats } from "../../../operations/operator/ExportText.ts"
import { credentialObject } from "../../../operations/operator/Objects.ts"
import { renderDetail } from "../../cli/Detail.ts"
import { stacked } from "../../cli/Rendered.ts"
import { act, FileOutput, noun } from "../Act.ts"
import { Acting, Configured, paged } from "../Acting.ts"
import { key, line, name, optional, or, paging, secret, textsOf, word } from "../Field.ts"
import { Int, pageOf } from "../schemas/Common.ts"
import { Credential, MintedCredential, scopeFields, scopeMembers } from "./CredentialShape.ts"

/* Declares the acts about credentials of external account binding (RFC 8555 section 7.3.4). */

const kid = key("The key identifier of the credential.")
const filters = { status: optional(word(eab.eabStatuses, "The status of the credential.")) }

/** Lists credentials. */
export const listCredentials = act({
  id: "listCredentials",
  does: "List credentials, newest first, without their secrets",
  access: "viewer",
  mayLag: true,
  input: { ...filters, ...paging },
  output: pageOf(Credential),
  errors: [],
  run: ({ status, ...window }) => paged(window, (window) => eab.list({ status, ...window }), credentialObject),
  http: { route: "GET /api/eab" },
  cli: {
    command: "eab list",
    example: "eab list --status active",
    columns: ({ accounts, createdAt, kid, label = "", profile = "every", status }) => ({
      kid,
      label,
      profile,
      status,
      created: createdAt,
      accounts: String(accounts)
    })
  }
})

/** Exports credentials as a file. */
export const exportCredentials = act({
  id: "exportCredentials",
  does: "Export credentials as a file, without their secrets",
  access: "viewer",
  mayLag: true,
  input: { ...filters, format: or(word(formats, "The format of the file."), "csv") },
  output: FileOutput,
  errors: ["export_too_large"],
  run: ({ format, status }) => Effect.flatMap(Acting.mostExported, (most) => eabFile({ status }, { format, most })),
  http: { route: "GET /api/eab/export" }
})

interface Named {
  readonly profile?: string | undefined
  readonly kinds?: ReadonlyArray<string> | undefined
}

const namesConfigured = ({ kinds, profile }: Named): boolean => profile !== undefined || kinds !== undefined

/** Refuses a profile or a kind of certificates that the configuration does not have. */
const checkNamed = Effect.fnUntraced(function*({ kinds, profile }: Named) {
  if (!namesConfigured({ kinds, profile })) return
  const config = yield* Configured.config
  if (profile !== undefined) yield* eab.checkProfile(config, profile)
  yield* eab.checkKinds(config, profile, kinds)
})

/** Creates a credential. */
export const createCredential = act({
  id: "createCredential",
  does: "Create a credential; its secret is shown once",
  access: "operator",
  input: {
    label: line("Its purpose. Policies can match this text.", { longest: eab.longestLabel }),
    profile: optional(name("The only profile that accepts it.")),
    ...scopeFields
  },
  output: MintedCredential,
  errors: [],
  run: ({ label, profile, ...scope }) =>
    Effect.gen(function*() {
      yield* checkNamed({ profile, kinds: scope.kinds })
      const { credential, secret } = yield* eab.create(yield* Acting.operator, { label, profile, scope })
      return { ...credentialObject(credential), hmacKey: Buffer.from(secret).toString("base64url") }
    }),
  http: { route: "POST /api/eab", status: 201 },
  cli: {
    command: "eab create",
    help: "Create a credential; its HMAC key is printed only once.",
    example: "eab create --label printers",
    needsConfig: namesConfigured,
    text: (credential) => stacked([renderDetail(credential), "", "The HMAC key is shown only now."], "\n"),
    ifLost: {
      outcome: "the credential was revoked",
      undo: ({ kid }) => Effect.flatMap(Acting.operator, (operator) => eab.revoke(operator, kid))
    }
  }
})

const leastKey = 16
const mostKey = 256

/** Takes over a credential that another server made. */
const importCredential = act({
  id: "importCredential",
  does: "Take over a credential of another server, whose clients keep their identifier and key",
  access: "operator",
  input: {
    externalKid: line("The identifier that the other server gave to it.", { longest: 256 }),
    hmacKey: secret(`Its key: base64url or base64 of ${leastKey} to ${mostKey} octets.`),
    label: line("Its purpose. Policies can match this text.", { longest: eab.longestLabel }),
    profile: optional(name("The only profile that accepts it.")),
    ...scopeFields
  },
  output: Credential,
  errors: [],
  run: ({ externalKid, hmacKey, label, profile, ...scope }) =>
    Effect.gen(function*() {
      yield* checkNamed({ profile, kinds: scope.kinds })
      const key = Buffer.from(hmacKey.trim().replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, ""), "base64url")
      if (key.length < leastKey || key.length > mostKey || !/^[\w+/=-]+$/.test(hmacKey.trim())) {
        return yield* new BadRequest({
          member: "hmacKey",
          detail: `takes base64url or base64 of ${leastKey} to ${mostKey} octets.`
        })
      }
      const external = { kid: externalKid, secret: key }
      const { credential } = yield* eab.create(yield* Acting.operator, { external, label, profile, scope })
      return credentialObject(credential)
    }),
  http: { route: "POST /api/eab/import", status: 201 },
  cli: {
    command: "eab import",
    args: ["externalKid"],
    example: "eab import OLD-KID --hmac-key-file FILE --label web",
    needsConfig: namesConfigured
  }
})

const readCredential = act({
  id: "readCredential",
  does: "Show a credential, without its secret",
  access: "viewer",
  mayLag: true,
  input: { kid },
  output: Credential,
  errors: [],
  run: ({ kid }) => Effect.map(eab.find(kid), credentialObject),
  http: { route: "GET /api/eab/{kid}" },
  cli: { command: "eab show", example: "eab show KID" }
})

/** Changes what a credential may ask for. */
export const changeCredential = act({
  id: "changeCredential",
  does: "Change what the accounts of a credential may ask for, beginning with their next order",
  access: "operator",
  input: {
    kid,
    ...scopeFields,
    clear: optional(
      textsOf("The name of a restriction to remove.", {
        shown: "member",
        takes: `any of ${scopeMembers.join(", ")}`,
        most: scopeMembers.length,
        read: (text) => scopeMembers.find((member) => member === text)
      })
    )
  },
  output: Credential,
  errors: [],
  run: ({ clear = [], kid, ...changes }) =>
    Effect.gen(function*() {
      const cleared = scopeMembers.filter((member) => clear.includes(member))
      if (changes.kinds !== undefined) {
        const { profile } = yield* eab.find(kid)
        yield* eab.checkKinds(yield* Configured.config, profile, changes.kinds)
      }
      return credentialObject(yield* eab.setScope(yield* Acting.operator, kid, { changes, cleared }))
    }),
  http: { route: "PATCH /api/eab/{kid}" },
  cli: {
    command: "eab set",
    help: "Change what the accounts of a credential may ask for, beginning with their next order.",
    example: "eab set KID --names '**.shop.example' --orders-per-day 100",
    needsConfig: namesConfigured
  }
})

/** Revokes a credential. */
export const revokeCredential = act({
  id: "revokeCredential",
  does: "Revoke a credential; its accounts remain",
  access: "operator",
  input: { kid },
  output: Credential,
  errors: [],
  run: ({ kid }) =>
    Effect.gen(function*() {
      return credentialObject(yield* eab.revoke(yield* Acting.operator, kid))
    }),
  http: { route: "POST /api/eab/{kid}/revoke", status: 204 },
  cli: {
    command: "eab revoke",
    help: "Revoke a credential: it binds no new accounts; bound accounts remain.",
    example: "eab revoke KID"
  }
})

const fates: { readonly [M in AccountsMode]: (accounts: number, orders: number) => string } = {
  keep: (accounts) => `keep its ${accounts} account(s)`,
  deactivate: (accounts) => `deactivate its ${accounts} account(s)`,
  delete: (accounts, orders) => `delete its ${accounts} account(s) with ${orders} order(s)`
}

/** Deletes a credential. */
export const deleteCredential = act({
  id: "deleteCredential",
  does: "Delete a credential",
  access: "operator",
  input: {
    kid,
    accounts: or(word(["keep", "deactivate", "delete"], "What happens to the accounts that it has bound."), "keep")
  },
  output: Schema.Struct({
    deleted: Schema.Struct({ accounts: Int, orders: Int }),
    deactivatedAccounts: Int,
    keptAccounts: Int
  }),
  errors: ["live_certificates"],
  run: ({ accounts, kid }) => Effect.flatMap(Acting.operator, (operator) => deletion.remove(operator, kid, accounts)),
  http: { route: "DELETE /api/eab/{kid}" },
  cli: {
    command: "eab delete",
    help: "Delete a credential; its accounts are kept unless a flag says otherwise.",
    example: "eab delete KID --yes",
    spelt: {
      accounts: {
        deactivate: ["deactivate-accounts", "Deactivate the accounts that it has bound."],
        delete: ["delete-accounts", "Delete the accounts that it has bound, with their orders."]
      }
    },
    confirm: ({ accounts: mode, kid }) =>
      Effect.map(
        deletion.preview(kid, mode),
        ({ accounts, credential, orders }) =>
          `Delete credential ${kid} (${credential.label ?? "no label"}) and ${fates[mode](accounts, orders)}?${
            mode === "keep" && credential.names !== undefined && accounts > 0
              ? " It has names, so the kept accounts can order nothing any more."
              : ""
          }`
      ),
    text: ({ deactivatedAccounts, deleted, keptAccounts }) =>
      `Deleted the credential; accounts: ${keptAccounts} kept, ${deactivatedAccounts} deactivated, ${deleted.accounts} deleted with ${deleted.orders} order(s).`
  }
})

/** The acts about credentials for external account binding. */
export const credentialActs = noun({
  name: "eab",
  description: "Credentials of external account binding.",
  commands: { eab: "Credentials for external account binding." },
  acts: [
    listCredentials,
    exportCredentials,
    createCredential,
    importCredential,
    readCredential,
    changeCredential,
    revokeCredential,
    deleteCredential
  ]
})
