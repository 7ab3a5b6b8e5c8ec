import { enqueueJob } from "../../../domain/words/JobKind.ts"

/**
 * Queues the signing of the next list of a CA. Returns the id of the job. If the job was already queued, this is the id
 * of that job. `above` is a number that the list must exceed and that the database does not know.
 */
export const enqueueList = (issuer: string, above?: number) =>
  enqueueJob({
    kind: "local_ca_crl_regenerate",
    dedupKey: issuer,
    payload: { issuer, ...above === undefined ? {} : { above } }
  })
