import type { ReadsCost, Spread } from "./Reads.ts"
import type { Paint } from "./Report.ts"
import { fixed, table } from "./Report.ts"

/** Writes a number of milliseconds. A value below 10 has a decimal. */
const milliseconds = (value: number | undefined): string => fixed(value, value !== undefined && value < 10 ? 1 : 0)

const percent = (share: number): string => `${Math.round(share * 100)} %`

const ratioOf = ({ error, median }: Spread): string => `${fixed(median, 2)} ± ${fixed(error, 2)}`

const clientsTable = (paint: Paint, { alone, beside, ratio }: ReadsCost): string =>
  table(
    paint,
    ["issuing clients", "alone", "beside reads", "ratio"],
    [
      ["request p50 ms", fixed(alone.p50, 1), fixed(beside.p50, 1), ratioOf(ratio.p50)],
      ["request p99 ms", fixed(alone.p99, 1), fixed(beside.p99, 1), paint.strong(ratioOf(ratio.p99))],
      ["issuances/s", fixed(alone.perSecond, 1), fixed(beside.perSecond, 1), ratioOf(ratio.perSecond)],
      ["CPU ms of the service", fixed(alone.serviceCpu, 2), fixed(beside.serviceCpu, 2), ""],
      ["CPU ms of database or readers", fixed(alone.databaseCpu, 2), fixed(beside.databaseCpu, 2), ""],
      ["others on the machine", percent(alone.others), percent(beside.others), ""]
    ]
  )

const readsTable = (paint: Paint, { reads }: ReadsCost): string =>
  table(
    paint,
    [
      "read",
      "total",
      "CPU ms",
      "again",
      "ms",
      "again",
      "beside: times",
      "first octet p50",
      "p95",
      "whole p50",
      "p95",
      ""
    ],
    reads.map(({ again, count, first, firstOctet, name, total, unexpected, whole }) => [
      name,
      total,
      milliseconds(first?.cpu),
      milliseconds(again?.cpu),
      milliseconds(first?.reading.whole),
      milliseconds(again?.reading.whole),
      String(count),
      milliseconds(firstOctet?.p50),
      milliseconds(firstOctet?.p95),
      milliseconds(whole?.p50),
      milliseconds(whole?.p95),
      unexpected.length === 0 ? "" : paint.bad(`answered ${[...new Set(unexpected)].join(", ")}`)
    ])
  )

/** Prints the figures as tables. */
export const readsReport = (paint: Paint, costs: ReadonlyArray<ReadsCost>): string =>
  costs.map((cost) => {
    const { builtSeconds, concurrency, name, population, readsPerSecond: rate } = cost
    const built = builtSeconds === undefined ? "kept from an earlier run" : `built in ${Math.round(builtSeconds)} s`
    return [
      paint.strong(
        `${name}: ${population.accounts} accounts, ${population.orders} orders, ${population.auditRows} audit rows, ${built}`
      ),
      `  ${concurrency} clients, ${
        rate.toFixed(1)
      } reads a second; issuances per window and read times in milliseconds`,
      clientsTable(paint, cost),
      readsTable(paint, cost)
    ].join("\n\n")
  }).join("\n\n")
