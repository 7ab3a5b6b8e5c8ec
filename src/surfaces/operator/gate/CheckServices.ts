import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { OperatorError } from "../../../domain/OperatorError.ts"
import { Internal } from "../../../domain/OperatorError.ts"
import type { ClientFacts } from "../../../domain/words/JobKind.ts"
import type { Request } from "../../../engine/http/Message.ts"
import type { ReverseNames } from "../../../engine/net/ReverseNames.ts"
import type { Database, StorageFailed } from "../../../engine/sql/Database.ts"
import { authenticateToken } from "../../../operations/operator/identity/Bearer.ts"
import type { SignInSettings } from "../../../operations/operator/identity/LoginLimiter.ts"
import * as sessions from "../../../operations/operator/identity/Sessions.ts"
import { admitOperator } from "../../../operations/PolicyGate.ts"
import type { Policy } from "../../../services/policy/Policy.ts"
import type { Shown } from "./Credentials.ts"
import type { Sender } from "./OperatorChecks.ts"

/** The services that the checks of a request use. */
export interface CheckServices {
  /** The policy of this listener. It judges every request. */
  readonly admit: (request: Request) => Effect.Effect<void, OperatorError>
  /** A client with its reverse name, if the name is found in time. */
  readonly named: (client: ClientFacts & { readonly ip: string }) => Effect.Effect<ClientFacts>
  /** The sender of a session or a token. Undefined if the request carries neither. */
  readonly identify: (
    shown: Shown,
    client: ClientFacts,
    options: { readonly touch: boolean }
  ) => Effect.Effect<Sender, OperatorError, Database>
}

/** The checkServices for a configuration. */
export const checkServicesOf = (
  settings: SignInSettings,
  { names, policy }: { readonly policy: Policy | undefined; readonly names: ReverseNames["Service"] }
): CheckServices => {
  const connection = policy?.connection
  return {
    admit: (request) => connection === undefined ? Effect.void : admitOperator(connection, request),
    named: (client) =>
      Effect.map(
        Effect.andThen(names.look(client.ip), names.of(client.ip)),
        (ptr) => ptr === undefined ? client : { ...client, ptr }
      ),
    identify: (shown, client, options) => {
      if (shown.kind === "nothing") return Effect.succeed(undefined)
      const secret = Redacted.make(shown.token)
      const found: Effect.Effect<Sender, OperatorError | StorageFailed, Database> = shown.kind === "token"
        ? authenticateToken(secret, { client, surface: "api" })
        : Effect.catchTag(
          sessions.authenticate(settings, secret, options),
          "MfaPending",
          () => sessions.authenticateHalf(settings, secret)
        )
      return Effect.catchTag(found, "StorageFailed", () => new Internal())
    }
  }
}
