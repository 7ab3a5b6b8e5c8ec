/** Whether an operator may sign in. The table, the API and the command line use these words. */
export const operatorStatuses = ["active", "disabled"] as const
export type OperatorStatus = (typeof operatorStatuses)[number]
