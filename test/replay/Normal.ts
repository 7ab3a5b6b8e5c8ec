/*
 * Replaces values that differ from run to run by fixed words. These are the service's random values, the directory, and
 * the digests in file names. Times are kept, because the clock of a play does not advance.
 */

/** Replaces random values by words. The same text gets the same word within a play. */
export const makeNormal = (directory: string): (text: string) => string => {
  const known = new Map<string, string>()
  const named = (kind: string) => (found: string): string => {
    const word = known.get(found) ?? `‹${kind} ${known.size + 1}›`
    known.set(found, word)
    return word
  }
  return (text) =>
    text
      .replaceAll(directory, "‹directory›")
      .replaceAll(/\/ui\/static\/[\w.]+-[\w-]+\.(\w+)/g, "/ui/static/‹file›.$1")
      .replaceAll(/acme_svc_(?!token-)[\w-]{43}_[a-z2-7]{6}/g, named("token"))
      .replaceAll(/\b(?!0190)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, named("id"))
      .replaceAll(/(?<![\w-])(?!session-|csrf-|acme_svc_)(?=[\w-]*[A-Z])[\w-]{43}(?![\w-])/g, named("secret"))
      .replaceAll(/\b[A-Z2-7]{32}\b|\b[A-Z2-7]{4}(?: [A-Z2-7]{4}){7}\b/g, named("authenticator"))
      .replaceAll(/\b(?!ABCDE-FGHIJ)[A-Z2-7]{5}-[A-Z2-7]{5}\b/g, named("recovery code"))
      .replaceAll(/([?&](?:amp;)?(?:tag|poll)(?:=|&#x3d;))[\w-]+/g, "$1‹tag›")
}
