/** What a record has of its own by a name that others chose; `constructor` is no label of a node. */
export function own<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
