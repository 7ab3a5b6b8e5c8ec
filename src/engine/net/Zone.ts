/** Whether a name is that of the zone or below it. Case and a final dot are ignored. */
export const isInZone = (name: string, zone: string): boolean => {
  const bare = (text: string) => text.replace(/\.$/, "").toLowerCase()
  return bare(name) === bare(zone) || bare(name).endsWith(`.${bare(zone)}`)
}
