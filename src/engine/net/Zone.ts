/** Returns whether a name is the name of the zone, or a name below it. Case and a final dot do not matter. */
export const isInZone = (name: string, zone: string): boolean => {
  const bare = (text: string) => text.replace(/\.$/, "").toLowerCase()
  return bare(name) === bare(zone) || bare(name).endsWith(`.${bare(zone)}`)
}
