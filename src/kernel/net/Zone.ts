/** Whether a name is a zone's own or below it, ignoring case and a final dot. */
export const isInZone = (name: string, zone: string): boolean => {
  const bare = (text: string) => text.replace(/\.$/, "").toLowerCase()
  return bare(name) === bare(zone) || bare(name).endsWith(`.${bare(zone)}`)
}
