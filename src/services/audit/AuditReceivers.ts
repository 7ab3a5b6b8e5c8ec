import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ReceiverName } from "../../domain/ReceiverName.ts"
import { SyslogTls } from "../../engine/net/SyslogTls.ts"
import { Web } from "../../engine/net/Web.ts"
import type { Config } from "../../settings/AppConfig.ts"
import { receiversOf } from "../../settings/AuditTable.ts"
import type { AuditReceiver } from "./AuditReceiver.ts"
import { httpReceiver } from "./HttpReceiver.ts"
import { syslogReceiver } from "./SyslogReceiver.ts"

/** The receivers to which the configuration in force pushes the rows of the audit trail. */
export class AuditReceivers extends Context.Service<AuditReceivers, {
  readonly all: ReadonlyArray<AuditReceiver>
}>()("acme/services/audit/AuditReceivers") {
  /** Makes the receivers. `host` names the installation. Reads no file and opens no connection. */
  static readonly layer = (
    audit: Config["audit"],
    host: string
  ): Layer.Layer<AuditReceivers, never, SyslogTls | Web> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const [syslog, web] = [yield* SyslogTls, yield* Web]
        const made: { readonly [N in ReceiverName]: () => AuditReceiver } = {
          syslog: () => syslogReceiver(audit.syslog, host, syslog),
          http: () => httpReceiver(audit.http, web)
        }
        return { all: receiversOf(audit).map((name) => made[name]()) }
      })
    )

  /** Pushes to these receivers. */
  static readonly layerOf = (all: ReadonlyArray<AuditReceiver>): Layer.Layer<AuditReceivers> =>
    Layer.succeed(this, { all })
}
