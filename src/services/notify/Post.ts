import * as Effect from "effect/Effect"
import type { Payload } from "../../domain/Notification.ts"
import { recipientsOf } from "../../domain/Notification.ts"
import type { Mail, MailServer } from "../../engine/net/Mail.ts"
import type { Receipt } from "./Delivery.ts"
import { DeliveryRefused, unrendered } from "./Delivery.ts"
import type { Messages } from "./MessageTemplates.ts"
import type { Section } from "./NotifyRoutes.ts"

type Entry = Section["email"]

/** Returns the server that an entry names. */
export const serverOf = (
  { smtp_host, smtp_password, smtp_port, smtp_security, smtp_username, timeout_ms }: Entry
): MailServer => ({
  host: smtp_host,
  port: smtp_port,
  security: smtp_security,
  username: smtp_username,
  password: smtp_password,
  timeoutMillis: timeout_ms
})

/** Returns the domain of a mailbox in ASCII, as a Message-ID requires. */
const domainOf = (mailbox: string): string => {
  const url = `http://${/@([^@>\s]+)>?$/.exec(mailbox)?.[1] ?? ""}`
  return URL.canParse(url) ? new URL(url).hostname : "localhost"
}

const mostShown = 200

/** Sends one message, to all its recipients or `only` to these. Every attempt has the same Message-ID. */
export const send = Effect.fnUntraced(function*(
  { mail, messages }: { readonly mail: Mail["Service"]; readonly messages: Messages },
  entry: Entry,
  fields: Payload,
  only?: ReadonlyArray<string>
): Effect.fn.Return<Receipt, DeliveryRefused> {
  const letter = yield* Effect.mapError(messages.letter(fields), unrendered)
  const to = only ?? recipientsOf(fields, entry.to)
  const posted = yield* Effect.mapError(
    mail.send(serverOf(entry), {
      ...letter,
      from: entry.from,
      to,
      messageId: `<${fields.delivery_id}@${domainOf(entry.from)}>`,
      at: fields.at
    }),
    ({ detail, isPermanent, status }) =>
      new DeliveryRefused({ detail: detail.slice(0, mostShown), hope: isPermanent ? "never" : "retry", status })
  )
  const answer = posted.answer.slice(0, mostShown)
  if (posted.refused.length === 0) return { answer }
  const left = posted.deferred
  const later = left.length === 0 ? "" : `; ${left.length} of the refused may be taken later`
  const detail = `${posted.refused.length} of ${to.length} recipients refused, the others taken${later}`
  // The other recipients have received the message. Another attempt would send it to them again.
  return yield* new DeliveryRefused({ detail, hope: "ended", left })
})
