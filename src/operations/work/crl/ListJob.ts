import { enqueueJob } from "../../../domain/words/JobKind.ts"

/** Has a worker sign the next list of a CA. Answers the id of the job, which others may have asked for. */
export const enqueueList = (issuer: string) =>
  enqueueJob({ kind: "local_ca_crl_regenerate", dedupKey: issuer, payload: { issuer } })
