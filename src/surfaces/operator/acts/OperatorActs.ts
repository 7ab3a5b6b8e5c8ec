import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { operatorRoles } from "../../../domain/OperatorRole.ts"
import { operatorStatuses } from "../../../domain/OperatorStatus.ts"
import { readUsername, usernameForm } from "../../../domain/Username.ts"
import { rfc3339 } from "../../../engine/Time.ts"
import { operatorDetailObject, operatorObject } from "../../../operations/operator/identity/OperatorObjects.ts"
import * as operators from "../../../operations/operator/identity/Operators.ts"
import * as passwordLinks from "../../../operations/operator/identity/PasswordLinks.ts"
import { act, noun } from "../Act.ts"
import { Acting, ActingAtKeyboard, Configured, paged } from "../Acting.ts"
import { optional, paging, secret, textOf, word } from "../Field.ts"
import { Id, Int, pageOf, Time } from "../schemas/Common.ts"
import { Role } from "../schemas/OperatorSchemas.ts"
import { mail, username } from "../TextFields.ts"
import { readSecondFactorOf, renewRecoveryCodes, resetSecondFactor } from "./OperatorFactorActs.ts"
import {
  listEverySession,
  listSessionsOf,
  revokeSessionOf,
  revokeSessions,
  revokeSessionsOf
} from "./OperatorSessionActs.ts"

/*
 * Declares the acts about operators (docs/contribute/decisions/admin.md, "Operators"). Each change over HTTP requires
 * the caller's password.
 */

const operator = {
  id: Id,
  username: Schema.String,
  status: Schema.Literals(operatorStatuses),
  role: Role,
  totpEnabled: Schema.Boolean,
  contact: Schema.optionalKey(Schema.String),
  createdAt: Time,
  updatedAt: Time,
  lastLoginAt: Schema.optionalKey(Time),
  knownLoginIps: Schema.Array(Schema.String)
}

const Operator = Schema.Struct(operator).annotate({ identifier: "Operator" })

const OperatorDetail = Schema.Struct({
  ...operator,
  enrolmentPending: Schema.Boolean,
  recoveryCodesRemaining: Int,
  activeSessions: Int
}).annotate({ identifier: "OperatorDetail" })

const named = { username: username("The name of the operator.") }
const contact = optional(
  mail("A mail address. If this member is absent, null or empty, the contact is removed.", {
    help: "Mail address of the operator, for notifications."
  })
)
const Named = { username: Schema.String }

/** Lists operators. */
export const listOperators = act({
  id: "listOperators",
  does: "List operators by name",
  access: "admin",
  input: {
    status: optional(word(operatorStatuses, "The status of the operator.")),
    role: optional(word(operatorRoles, "The role of the operator.")),
    ...paging
  },
  output: pageOf(Operator),
  errors: [],
  run: ({ role, status, ...window }) =>
    paged(window, (window) => operators.list({ role, status }, window), operatorObject),
  http: { route: "GET /api/operators" },
  cli: {
    command: "admin user list",
    example: "admin user list --role admin",
    columns: ({ contact, lastLoginAt = "never", role, status, totpEnabled, username }) => ({
      name: username,
      role,
      status,
      "second factor": totpEnabled ? "yes" : { text: "no", style: "yellow" },
      "last sign-in": lastLoginAt,
      contact: contact ?? { text: "none", style: "yellow" }
    })
  }
})

/** Shows an operator. */
export const readOperator = act({
  id: "readOperator",
  does: "Show an operator",
  access: "admin",
  input: named,
  output: OperatorDetail,
  errors: [],
  run: ({ username }) =>
    Effect.gen(function*() {
      const { admin } = yield* Configured.config
      return operatorDetailObject(yield* operators.show(admin, username))
    }),
  http: { route: "GET /api/operators/{username}" },
  cli: { command: "admin user show", example: "admin user show olga" }
})

const createOperator = act({
  id: "createOperator",
  does: "Create an operator",
  access: "admin",
  input: {
    username: textOf({ description: "The operator's name.", shown: "text", takes: usernameForm, read: readUsername }),
    password: secret("The password."),
    role: optional(
      word(operatorRoles, "The role. Without it, the first operator is an admin and others are viewers.")
    ),
    contact
  },
  output: Schema.Struct({ ...Named, role: Role }),
  errors: ["name_taken", "weak_password"],
  run: ({ password, ...given }) =>
    Effect.gen(function*() {
      const config = yield* Configured.config
      return yield* operators.create(config, yield* ActingAtKeyboard, { ...given, password: Redacted.make(password) })
    }),
  cli: {
    command: "admin user create",
    example: "admin user create olga --role operator",
    args: ["username"],
    // A new password must follow the rules of the configuration, so the whole configuration is needed.
    needsConfig: () => true,
    text: ({ role, username }) => `Operator ${username} was created with the role ${role}.`
  }
})

const setPassword = act({
  id: "setPassword",
  does: "Set an operator's password, and end their sessions",
  access: "admin",
  input: { ...named, password: secret("The password.") },
  output: Schema.Struct({ ...Named, sessionsEnded: Int }),
  errors: ["weak_password"],
  run: ({ password, username }) =>
    Effect.gen(function*() {
      const [config, by] = [yield* Configured.config, yield* ActingAtKeyboard]
      return { username, sessionsEnded: yield* operators.setPassword(config, by, username, Redacted.make(password)) }
    }),
  cli: {
    command: "admin user passwd",
    example: "admin user passwd olga",
    args: ["username"],
    // A new password must follow the rules of the configuration, so the whole configuration is needed.
    needsConfig: () => true,
    text: ({ sessionsEnded }) => `The password was changed, and ${sessionsEnded} session(s) ended.`
  }
})

const makePasswordLink = act({
  id: "makePasswordLink",
  does: "Make a link with which an operator sets a password; it is printed only once, and replaces an earlier one",
  access: "admin",
  input: named,
  output: Schema.Struct({ ...Named, url: Schema.String, expiresAt: Time }),
  errors: [],
  run: ({ username }) =>
    Effect.gen(function*() {
      const [config, by] = [yield* Configured.config, yield* ActingAtKeyboard]
      const { expiresAt, url, username: name } = yield* passwordLinks.make(config, by, username)
      return { username: name, url: Redacted.value(url), expiresAt: rfc3339(expiresAt) }
    }),
  cli: {
    command: "admin user link",
    example: "admin user link olga",
    args: ["username"],
    // The link begins with admin.base_url.
    needsConfig: () => true,
    text: ({ url }) => url,
    remark: () => "Open the link in a browser on this machine. It is good once, for 15 minutes.",
    ifLost: { outcome: "nobody has the link" }
  }
})

/** Disables an operator. */
export const disableOperator = act({
  id: "disableOperator",
  does: "Disable an operator: end their sessions, and refuse their tokens until they are enabled",
  access: "admin",
  input: named,
  output: Schema.Struct({ ...Named, status: Schema.Literal("disabled") }),
  errors: ["last_admin", "self_target"],
  run: ({ username }) =>
    Effect.gen(function*() {
      yield* operators.disable(yield* Acting.operator, username)
      return { username, status: "disabled" as const }
    }),
  http: { route: "POST /api/operators/{username}/disable", status: 204, isStepUp: true },
  cli: {
    command: "admin user disable",
    help: "Disable an operator: neither sign-in nor tokens are accepted.",
    example: "admin user disable olga",
    text: () =>
      "The operator is disabled. The sessions have ended, and tokens are refused until the operator is enabled."
  }
})

/** Enables an operator. */
export const enableOperator = act({
  id: "enableOperator",
  does: "Enable an operator",
  access: "admin",
  input: named,
  output: Schema.Struct({ ...Named, status: Schema.Literal("active") }),
  errors: [],
  run: ({ username }) =>
    Effect.gen(function*() {
      yield* operators.enable(yield* Acting.operator, username)
      return { username, status: "active" as const }
    }),
  http: { route: "POST /api/operators/{username}/enable", status: 204, isStepUp: true },
  cli: {
    command: "admin user enable",
    help: "Let a disabled operator sign in again.",
    example: "admin user enable olga",
    text: () => "The operator is active. Tokens that have not ended are taken again."
  }
})

/** Changes the role of an operator. */
export const changeRole = act({
  id: "changeRole",
  does: "Change an operator's role, and end their sessions",
  access: "admin",
  input: { ...named, role: word(operatorRoles, "The new role.") },
  output: Schema.Struct({ ...Named, role: Role }),
  errors: ["last_admin", "self_target"],
  run: ({ role, username }) =>
    Effect.gen(function*() {
      yield* operators.setRole(yield* Acting.operator, username, role)
      return { username, role }
    }),
  http: { route: "POST /api/operators/{username}/role", status: 204, isStepUp: true },
  cli: {
    command: "admin user role",
    example: "admin user role olga viewer",
    args: ["username", "role"],
    text: ({ role }) => `The role is ${role}.`
  }
})

/** Changes the contact of an operator. */
export const changeContact = act({
  id: "changeContact",
  does: "Change the address for an operator's notifications, or remove it",
  access: "admin",
  input: { ...named, contact },
  output: Schema.Struct({ ...Named, contact: Schema.optionalKey(Schema.String) }),
  errors: [],
  run: ({ contact, username }) =>
    Effect.gen(function*() {
      yield* operators.setContact(yield* Acting.operator, username, contact)
      return { username, ...contact === undefined ? {} : { contact } }
    }),
  http: { route: "POST /api/operators/{username}/contact", status: 204, isStepUp: true },
  cli: {
    command: "admin user contact",
    help: "Change an operator's contact. Without --contact, the contact is removed.",
    example: "admin user contact olga --contact olga@example.org",
    text: ({ contact }) => contact === undefined ? "The contact was cleared." : `The contact is ${contact}.`
  }
})

const deleteOperator = act({
  id: "deleteOperator",
  does: "Delete an operator; their rows in the audit trail remain",
  access: "admin",
  input: named,
  output: Schema.Struct(Named),
  errors: ["last_admin"],
  run: ({ username }) =>
    Effect.gen(function*() {
      yield* operators.remove(yield* ActingAtKeyboard, username)
      return { username }
    }),
  cli: {
    command: "admin user delete",
    example: "admin user delete olga",
    args: ["username"],
    confirm: ({ username }) =>
      Effect.gen(function*() {
        const name = yield* operators.previewRemoval(yield* ActingAtKeyboard, username)
        return `Delete operator ${name} with all sessions and tokens?`
      }),
    text: ({ username }) => `Operator ${username} was deleted.`
  }
})

/** The acts about operators, their second factors and their sessions. */
export const operatorActs = noun({
  name: "operators",
  description: "Operators. Each change needs the password of the caller.",
  commands: {
    admin: "Operators, their tokens and sessions.",
    "admin user": "Operators.",
    "admin user totp": "Second factors; operators enrol them in the browser.",
    "admin session": "Sessions of operators."
  },
  acts: [
    listOperators,
    createOperator,
    readOperator,
    setPassword,
    makePasswordLink,
    listSessionsOf,
    listEverySession,
    disableOperator,
    enableOperator,
    resetSecondFactor,
    readSecondFactorOf,
    renewRecoveryCodes,
    changeRole,
    changeContact,
    deleteOperator,
    revokeSessionOf,
    revokeSessionsOf,
    revokeSessions
  ]
})
