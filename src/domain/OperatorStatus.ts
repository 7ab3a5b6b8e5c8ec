/** Whether an operator may sign in, in the words of the table, the API and the command line. */
export const operatorStatuses = ["active", "disabled"] as const
export type OperatorStatus = (typeof operatorStatuses)[number]
