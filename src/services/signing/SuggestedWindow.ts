/**
 * The window in which a certificate should be renewed, as suggested by the party that signed it. Times are epoch
 * seconds. The end is after the start.
 */
export interface SuggestedWindow {
  readonly start: number
  readonly end: number
  /** An absolute `http` or `https` URL with an explanation. */
  readonly explanationUrl: string | undefined
}

/** Returns whether a text is an absolute `http` or `https` URL. */
export const isWebUrl = (text: string): boolean => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url !== undefined && /^https?:$/.test(url.protocol)
}
