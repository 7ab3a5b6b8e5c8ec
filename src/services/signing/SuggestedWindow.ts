/**
 * When to renew a certificate, as suggested by the party that signed it. Times are epoch seconds, the end after the
 * start.
 */
export interface SuggestedWindow {
  readonly start: number
  readonly end: number
  /** Absolute `http` or `https` URL. */
  readonly explanationUrl: string | undefined
}

/** Whether a text is an absolute `http` or `https` URL. */
export const isWebUrl = (text: string): boolean => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url !== undefined && /^https?:$/.test(url.protocol)
}
