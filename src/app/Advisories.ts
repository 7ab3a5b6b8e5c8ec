import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { operatorScope } from "../domain/Notification.ts"
import type { Roles } from "../domain/Role.ts"
import { rolesText } from "../domain/Role.ts"
import { emit } from "../domain/words/Log.ts"
import { withPlace } from "../engine/config/ConfigRefused.ts"
import { isExecutable, modeOf } from "../engine/host/Files.ts"
import type { Database } from "../engine/sql/Database.ts"
import { remarks } from "../operations/operator/identity/Remarks.ts"
import { advise as notifications } from "../services/notify/NotifyAdvisories.ts"
import { advise as policies, adviseOfChecks, scriptsOfFilter } from "../services/policy/PolicyAdvisories.ts"
import type { Config } from "../settings/AppConfig.ts"
import { hasSecretInFile } from "../settings/Effective.ts"
import type { Loaded } from "../settings/Load.ts"
import type { Resolved } from "../settings/Resolve.ts"
import { proxiesOf } from "./Graph.ts"
import { isSqlite } from "./OpenDatabase.ts"

/**
 * Logs advisories about the operators who sign in. If the database does not answer, the service starts anyway. The
 * failed statement has already logged the reason.
 */
export const adviseOnOperators = ({ admin }: Config, roles: Roles): Effect.Effect<void, never, Database> =>
  admin.enabled && roles.has("admin")
    ? Effect.catchTag(remarks(admin), "StorageFailed", () => Effect.void)
    : Effect.void

/**
 * Warns about faults that are tolerated because they are in sections that are off or in keys that only other roles use.
 */
export const adviseOfIgnored = ({ ignored }: Pick<Resolved, "ignored">): Effect.Effect<void> =>
  Effect.forEach(
    ignored,
    ({ key, message, place }) => emit("server_config_fault_ignored", { key, error: withPlace(message, place) }),
    { discard: true }
  )

/**
 * The permission bits that a file with secrets must not have. The group may read the file, because packages give the
 * file to the group of the service.
 */
const openToOthers = 0o027

/** Logs what an operator should know about the configuration file itself, and about the tolerated faults in it. */
export const adviseOfFile = (
  loaded: Pick<Loaded, "config" | "filePresent" | "ignored" | "path" | "sources">
): Effect.Effect<void> =>
  Effect.gen(function*() {
    yield* adviseOfIgnored(loaded)
    if (!loaded.filePresent || !hasSecretInFile(loaded)) return
    const mode = yield* modeOf(loaded.path)
    if (mode !== undefined && (mode & openToOthers) !== 0) {
      yield* emit("server_config_file_permissive", { path: loaded.path })
    }
  })

type Listener = Pick<Config["server"], "base_url" | "tls">

/**
 * Warns if the scheme of a base URL is not the scheme that the listener serves. This may be intended, because a trusted
 * proxy may change the scheme.
 */
const adviseOfScheme = (
  section: "server" | "admin",
  { base_url, tls }: Listener,
  policies: ReadonlyArray<{ readonly filter: Pick<Config["filter"], "trusted_proxies"> }>
): Effect.Effect<void> =>
  tls.enabled === base_url.startsWith("https:") || policies.some(({ filter }) => filter.trusted_proxies.length > 0)
    ? Effect.void
    : emit("tls_base_url_mismatch", { key: `${section}.base_url`, base_url })

/**
 * Logs advisories at startup and at each reload: nothing has failed, but a setting may be unintended. The advisories
 * are the same for all listeners (docs/contribute/decisions/process.md, "Advisories").
 */
export const advise = (config: Config, roles: Roles): Effect.Effect<void> =>
  Effect.gen(function*() {
    const servesOperators = config.admin.enabled && roles.has("admin")
    if (!roles.has("worker")) yield* emit("server_role_no_worker", { roles: rolesText(roles) })
    const { sqlite, url } = config.database
    if (sqlite.synchronous === "normal" && isSqlite(Redacted.value(url))) {
      yield* emit("db_commits_unsynced", { key: "database.sqlite.synchronous" })
    }
    for (const { enabled, name, signer } of config.profiles) {
      const { script_path, supports_crl, supports_renewal_info } = signer.custom
      const isRun = roles.has("worker") || (roles.has("acme") && (supports_crl || supports_renewal_info))
      if (!enabled || signer.backend !== "custom" || !isRun || (yield* isExecutable(script_path))) continue
      yield* emit("script_not_executable", {
        key: `profiles.${name}.signer.custom.script_path`,
        path: script_path
      })
    }
    if (servesOperators) {
      yield* adviseOfChecks(operatorScope, config.admin)
      for (const [key, path] of scriptsOfFilter("admin.filter", config.admin.filter)) {
        if (!(yield* isExecutable(path))) yield* emit("script_not_executable", { key, path })
      }
    }
    for (const { enabled, name, signer } of config.profiles) {
      const hasSecret = signer.backend === "relay" && Redacted.value(signer.relay.eab.hmac_key) !== ""
      if (enabled && hasSecret) yield* emit("signer_relay_eab_secret_in_config", { profile: name })
    }
    yield* notifications(config, roles)
    const { shown } = proxiesOf(config)
    if (shown !== undefined) {
      const { http, https, noProxyEntries, source } = shown
      yield* emit("proxy_configured", { http, https, no_proxy_entries: noProxyEntries, source })
    }
    if (servesOperators) yield* adviseOfScheme("admin", config.admin, [config.admin])
    if (!roles.has("acme")) return
    const { base_url, tls } = config.server
    if (!tls.enabled) yield* emit("tls_disabled", { base_url })
    yield* adviseOfScheme("server", config.server, [config, ...config.profiles])
    for (const { challenge, enabled, name } of config.profiles) {
      if (enabled && challenge.bypass) yield* emit("challenge_validation_bypassed", { profile: name })
    }
    yield* policies(config.profiles.filter(({ enabled }) => enabled))
  })
