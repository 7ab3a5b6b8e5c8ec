import type { JobKind } from "../../domain/words/JobKind.ts"
import type { Config, ProfileConfig } from "../../settings/AppConfig.ts"

const usesHttp01 = ({ backend, relay }: ProfileConfig["signer"]): boolean =>
  backend === "relay" && relay.challenge_strategy === "http01"

/** Returns the sweeps that a configuration needs. Each sweep has a row in the queue, which always waits or runs. */
export const sweepsOf = (
  { audit, jobs, profiles }: Pick<Config, "audit" | "jobs" | "profiles">
): ReadonlySet<JobKind> => {
  const served = profiles.filter(({ enabled }) => enabled)
  const known: ReadonlyArray<readonly [JobKind, isWanted: boolean]> = [
    ["local_ca_crl_sweep", served.length > 0],
    ["nonce_sweep", true],
    ["admin_session_sweep", true],
    ["http01_token_sweep", served.some(({ signer }) => usesHttp01(signer))],
    ["order_sweep", true],
    ["audit_sweep", audit.retention_days > 0],
    ["job_retention_sweep", jobs.retention_days > 0]
  ]
  return new Set(known.flatMap(([kind, isWanted]) => isWanted ? [kind] : []))
}
