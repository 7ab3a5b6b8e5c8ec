import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type { AccountsMode } from "../../domain/Audit.ts"
import * as eab from "../../operations/Eab.ts"
import { credentialObject } from "../../operations/Objects.ts"
import { eabFilters, eabStatuses } from "../../operations/RecordFilters.ts"
import type { Page } from "../../surfaces/cli/Detail.ts"
import { renderDetail } from "../../surfaces/cli/Detail.ts"
import { stacked } from "../../surfaces/cli/Rendered.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { namesOf } from "../NamedProfile.ts"
import { withRecords } from "../Records.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, optionalText, optionalWord, pageOptions, switchFlag, textFlag } from "./Flags.ts"
import { orTakeBack, print } from "./Print.ts"

const kidArgument = Argument.String("kid").pipe(Argument.withDescription("The credential's key identifier."))

const configured = Effect.fnUntraced(function*(profile: string) {
  const { config } = yield* Settings.loaded
  if (config.profiles.some(({ name }) => name === profile)) return
  const there = namesOf(config.profiles)
  return yield* new CommandFailed({ code: 3, message: `--profile: ${profile} is not configured; there is ${there}.` })
})

const create = command(
  "create",
  "Create a credential; its HMAC key is printed only once. Example: acme-svc eab create --label printers. Exit codes: 0, 1, 2, 3.",
  {
    label: textFlag("label", eab.longestLabel).pipe(Flag.withDescription("Its purpose; policies can match this text.")),
    profile: optionalText("profile", "The only profile that accepts it."),
    json: jsonOption
  },
  ({ json, label, profile }) =>
    Effect.andThen(
      profile === undefined ? Effect.void : configured(profile),
      withRecords(Effect.gen(function*() {
        const { credential, secret } = yield* eab.create(yield* Operator, { label, profile })
        const object = {
          ...credentialObject(credential),
          hmacKey: Buffer.from(secret).toString("base64url")
        }
        yield* print(json, object, () => stacked([renderDetail(object), "", "The HMAC key is shown only now."], "\n"))
        yield* orTakeBack("the credential was revoked", eab.revoke(yield* Operator, credential.kid))
      }))
    )
)

const list = command(
  "list",
  "List credentials, newest first, without their secrets. Example: acme-svc eab list --status active. Exit codes: 0, 1, 3.",
  {
    status: optionalWord("status", eabStatuses),
    ...pageOptions,
    json: jsonOption
  },
  ({ json, limit, offset, status }) =>
    withRecords(
      Effect.gen(function*() {
        const filters = yield* eabFilters({ status })
        const { items, total } = yield* eab.list({ ...filters, limit, offset })
        const page: Page<ReturnType<typeof credentialObject>> = {
          items: items.map(credentialObject),
          total,
          limit,
          offset
        }
        yield* print(json, page, () =>
          renderTable(
            ["kid", "label", "profile", "status", "created", "accounts"],
            page.items.map(({ accounts, createdAt, kid, label = "", profile = "every", status }) => [
              kid,
              label,
              profile,
              status,
              createdAt,
              String(accounts)
            ]),
            total
          ))
      })
    )
)

const one = (name: "show" | "revoke", text: string) =>
  command(
    name,
    text,
    { kid: kidArgument, json: jsonOption },
    ({ json, kid }) =>
      withRecords(
        (name === "show" ? eab.find(kid) : Effect.flatMap(Operator, (operator) => eab.revoke(operator, kid))).pipe(
          Effect.map(credentialObject),
          Effect.flatMap((object) => print(json, object, () => renderDetail(object)))
        )
      )
  )

const remove = command(
  "delete",
  "Delete a credential; its accounts are kept unless a flag says otherwise. Example: acme-svc eab delete KID --yes. Exit codes: 0, 1, 2, 3.",
  {
    kid: kidArgument,
    deactivate: switchFlag("deactivate-accounts", "Deactivate the accounts that it has bound."),
    delete: switchFlag("delete-accounts", "Delete the accounts that it has bound, with their orders."),
    json: jsonOption
  },
  (options) =>
    withRecords(
      Effect.gen(function*() {
        if (options.deactivate && options.delete) {
          return yield* new CommandFailed({
            code: 2,
            message: "--deactivate-accounts and --delete-accounts exclude each other."
          })
        }
        const mode: AccountsMode = options.deactivate ? "deactivate" : options.delete ? "delete" : "keep"
        const { accounts, credential, orders } = yield* eab.preview(options.kid, mode)
        const fate = mode === "delete" ? `delete its ${accounts} account(s) with ${orders} order(s)` : mode === "keep"
          ? `keep its ${accounts} account(s)`
          : `deactivate its ${accounts} account(s)`
        yield* Confirmation.ask(`Delete credential ${options.kid} (${credential.label ?? "no label"}) and ${fate}?`)
        const result = yield* eab.remove(yield* Operator, options.kid, mode)
        yield* print(
          options.json,
          result,
          () =>
            `Deleted the credential; accounts: ${result.keptAccounts} kept, ${result.deactivatedAccounts} deactivated, ${result.deleted.accounts} deleted with ${result.deleted.orders} order(s).`
        )
      })
    )
)

/** `eab`: credentials for external account binding (RFC 8555 section 7.3.4). */
export const eabCommand = Command.make("eab").pipe(
  Command.withDescription("Credentials for external account binding."),
  Command.withSubcommands([
    create,
    list,
    one("show", "Show a credential without its secret. Example: acme-svc eab show KID. Exit codes: 0, 1, 3."),
    one(
      "revoke",
      "Revoke a credential: it binds no new accounts; bound accounts remain. Example: acme-svc eab revoke KID. Exit codes: 0, 1, 3."
    ),
    remove
  ])
)
