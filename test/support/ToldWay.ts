import type { X509Certificate } from "node:crypto"
import type { MessageKind } from "../../src/domain/Notification.ts"
import { operatorScope } from "../../src/domain/Notification.ts"
import { everybody } from "./Inbox.ts"
import type { Expected, Stage } from "./ToldStage.ts"
import { given } from "./ToldStage.ts"

/* The parts of a row in the table of all notifications. */

/** The surfaces through which something happens. */
export const surfaces = ["ACME", "worker", "API", "panel", "command line"] as const

/** A row of the table: one event, caused in one way. */
export interface Way {
  readonly event: MessageKind
  /** The outcome or the change, if the event has several. */
  readonly says?: string
  readonly surface: typeof surfaces[number]
  /** The path, route, command or kind of job in the form that its surface declares. */
  readonly entry: string
  /** The case, if an entry has several. */
  readonly what?: string
  /** Whether the short run includes this row. */
  readonly isShort: boolean
  /** Causes the event, and returns the expected notifications. */
  readonly act: (stage: Stage) => Promise<Expected>
}

/** Marks a row that the short run includes. */
export const short = { isShort: true }
/** Marks a row that only the full run has. */
export const long = { isShort: false }

/** A contact that neither a mail header nor SMTP can contain as it is. */
export const contacts = ["mailto:zoe@bücher.example", "mailto:o'hara@example.org"]

/** Returns the notification about a revocation. Without an address, the revocation was made at the keyboard. */
export const revocation = (
  { leaf, names, orderId, owner: { id, profile } }: Awaited<ReturnType<Stage["issued"]>>,
  reason: number | undefined,
  from = "127.0.0.1"
) =>
  ({
    event: "certificate_revoked",
    scope: profile,
    members: {
      order_id: orderId,
      account_id: id,
      cert_serial: leaf.serialNumber.toLowerCase(),
      identifiers: names,
      ...reason === undefined ? {} : { reason },
      ...from === "" ? {} : { client_ip: from }
    }
  }) as const

/** Returns the notification about a deactivated account. */
export const deactivation = (profile: string, id: string, from = "127.0.0.1") =>
  ({
    event: "account_deactivated",
    scope: profile,
    members: { account_id: id, ...from === "" ? {} : { client_ip: from } }
  }) as const

/** Returns the notification about an account that was blocked, with the reason, or unblocked. */
export const blocking = (profile: string, id: string, reason: string | undefined, from = "127.0.0.1") =>
  ({
    event: reason === undefined ? "account_unblocked" : "account_blocked",
    scope: profile,
    members: {
      account_id: id,
      ...reason === undefined ? {} : { block_reason: reason },
      ...from === "" ? {} : { client_ip: from }
    }
  }) as const

/** Returns the first of the recorded notifications. */
export const only = ([one]: ReadonlyArray<Expected>): Expected => given(one)

/** Returns a certificate in the form that revokeCert takes. */
export const inBase64 = (leaf: X509Certificate): string => leaf.raw.toString("base64url")

/** Returns the notification about an operator. */
export const ofOperator = (
  event: "admin_credential_changed" | "admin_sign_in",
  username: string,
  members: Readonly<Record<string, unknown>>,
  from: string | undefined
) => {
  const recipient = `${username}@example.org`
  const all = {
    username,
    recipient,
    ...members,
    ...from === undefined ? {} : { client_ip: from, user_agent: "test \"1\"" }
  }
  const { admins = [], previous_recipient: previous = all.recipient } = all as {
    readonly previous_recipient?: string
    readonly admins?: ReadonlyArray<string>
  }
  const isAlarming = ["password_guessed", "step_up_refused"].includes(String(members["outcome"]))
  const to = [previous, ...admins, ...isAlarming ? [everybody] : []]
  return { event, scope: operatorScope, members: all, to } as const
}
