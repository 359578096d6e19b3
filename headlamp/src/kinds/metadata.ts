/** What every object of Kubernetes says of itself, as far as the plugin reads it. */
export interface Metadata {
  readonly name: string;
  /** Absent: it is in none. */
  readonly namespace?: string;
  readonly uid?: string;
  readonly creationTimestamp?: string;
}
