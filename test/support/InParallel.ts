/** Runs `work` on all items, `width` at a time, and returns the results in the order of the items. */
export const inParallel = async <A, B>(
  items: ReadonlyArray<A>,
  width: number,
  work: (item: A) => Promise<B>
): Promise<ReadonlyArray<B>> => {
  const results: Array<B> = []
  const left = items.entries()
  const worker = async () => {
    for (const [index, item] of left) results[index] = await work(item)
  }
  await Promise.all(Array.from({ length: width }, worker))
  return results
}
