import { parseRfc3339 } from "../../engine/Time.ts"
import type { decodedChainObject } from "../../operations/operator/objects/CertificateObjects.ts"

const percent = (from: string, to: string, now: number): number => {
  const [start, end] = [parseRfc3339(from) ?? 0, parseRfc3339(to) ?? 0]
  return end <= start ? 100 : Math.round(Math.min(1, Math.max(0, (now - start) / (end - start))) * 100)
}

/** Returns a decoded chain for its page. Each certificate has the percentage of its lifetime that has passed. */
export const certificateViews = (chain: ReturnType<typeof decodedChainObject>, now: number) => ({
  ...chain,
  certificates: chain.certificates.map((one, index) => ({
    ...one,
    isLeaf: index === 0,
    elapsed: percent(one.notBefore, one.notAfter, now)
  }))
})
