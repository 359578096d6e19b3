// Generated from operator/gpu_scheduler/dashboard/views.py: `make dashboard-types`. Change that.

/** The first page. `parts` add up to `gpus`. */
export interface OverviewView {
  readonly at: number;
  readonly lead: Lead;
  readonly gpus: number;
  readonly nodes: number;
  readonly idleSeconds: number;
  readonly followed: boolean;
  readonly silentAgents: number;
  readonly parts: readonly PartRow[];
  readonly projects: readonly ProjectRow[];
  readonly reasons: readonly ReasonRow[];
  readonly idle: readonly IdleRow[];
  readonly idleCount: number;
  readonly advice: readonly AdviceRow[];
  readonly adviceCount: number;
}

/** What opens a page: what is going on, and paler what comes next or would help. */
export interface Lead {
  readonly first: readonly LeadPiece[];
  readonly then: readonly LeadPiece[];
}

/** A part of a sentence; `to`: the page with the rows behind it, empty: plain text. */
export interface LeadPiece {
  readonly text: string;
  readonly to: string;
}

/** GPUs in one state; `note`: which, in a few words, such as 'dell-5 is cordoned'. */
export interface PartRow {
  readonly state: 'busy' | 'closed' | 'free' | 'free-in-pieces' | 'idle' | 'neighbours' | 'part-unused' | 'unknown';
  readonly gpus: number;
  readonly note: string;
}

/** A project, in GPUs. */
export interface ProjectRow {
  readonly name: string;
  /** guaranteed. */
  readonly quota: number;
  /** the most it may hold; None: no limit. */
  readonly limit: number | null;
  /** what it is due. */
  readonly fairShare: number;
  /** now. */
  readonly held: number;
  /** of these above the quota. */
  readonly borrowed: number;
  /** since when without a break, as far as this leader knows. */
  readonly borrowedSince: number | null;
  /** of what is held; None: not known. */
  readonly busy: number | null;
  /** of what is held, past the threshold. */
  readonly idle: number;
  /** asked for by what waits and can start as it is. */
  readonly pending: number;
  /** workloads that wait. */
  readonly waiting: number;
  /** workloads that hold GPUs. */
  readonly running: number;
  /** that are charged to it. */
  readonly namespaces: readonly string[];
  /** what is wrong with the object; empty: nothing. */
  readonly problem: string;
}

/** Why some wait. */
export interface ReasonRow {
  /** the word of their status. */
  readonly reason: string;
  /** how many. */
  readonly jobs: number;
  /** that they ask for. */
  readonly gpus: number;
  /** since when the one waits that waits longest. */
  readonly since: number;
  /** what that one is told. */
  readonly message: string;
  /** that one; None where the reader may not see it. */
  readonly first: WorkRef | null;
}

/** A workload: a GPUJob, or who owns pods that ask by themselves (Deployment, Pod, ...). */
export interface WorkRef {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
}

/** Who holds GPUs and does not use them; `gpu_hours`: since then; `command`: gives back. */
export interface IdleRow {
  readonly ref: WorkRef;
  readonly project: string;
  readonly type: string;
  readonly gpus: number;
  readonly idleSince: number;
  readonly gpuHours: number;
  readonly command: string;
}

/** What to change about a workload. */
export interface AdviceRow {
  readonly ref: WorkRef;
  readonly project: string;
  readonly rule: string;
  readonly since: number | null;
  readonly message: string;
  readonly command: string;
}

/** All nodes. */
export interface GpusView {
  readonly at: number;
  readonly lead: Lead;
  readonly idleSeconds: number;
  readonly followed: boolean;
  readonly nodes: readonly NodeRow[];
}

/** A node with GPUs. */
export interface NodeRow {
  readonly name: string;
  readonly model: string;
  readonly memoryMib: number;
  /** why it takes no new pods, such as 'cordoned'; empty: it does. */
  readonly closed: string;
  /** how its agent is: 'ok', 'silent' (renews its Lease no more), 'none'. */
  readonly agent: 'none' | 'ok' | 'silent';
  /** of its topology: zone, rack and the like, by the label's last part. */
  readonly labels: Readonly<Record<string, string>>;
  readonly free: number;
  readonly cpuFree: number;
  readonly cpuTotal: number;
  readonly devices: readonly DeviceRow[];
}

/** A GPU; `problem`: why it takes nobody, empty: it does; `celsius`: how hot it is. */
export interface DeviceRow {
  readonly index: number;
  readonly uuid: string;
  readonly model: string;
  readonly memoryMib: number;
  readonly problem: string;
  readonly free: number;
  readonly busy: number | null;
  readonly memoryUsedMib: number | null;
  readonly celsius: number | null;
  readonly shares: readonly ShareRow[];
}

/** A part of a device that somebody holds. */
export interface ShareRow {
  /** whose; None: of somebody whom the reader may not see, all of them in one. */
  readonly ref: WorkRef | null;
  readonly project: string;
  /** its name. */
  readonly pod: string;
  /** of the device. */
  readonly gpus: number;
  /** share of the device's time with a kernel of its own. */
  readonly busy: number | null;
  /** that it holds there. */
  readonly memoryMib: number | null;
  /** that it may hold there. */
  readonly capMib: number | null;
  /** its last kernel, where that is longer ago than the threshold. */
  readonly idleSince: number | null;
}

/** One GPU. */
export interface DeviceView {
  readonly at: number;
  readonly lead: Lead;
  readonly idleSeconds: number;
  readonly followed: boolean;
  /** that it is in, with no other. */
  readonly node: NodeRow;
  readonly device: DeviceRow;
  /** None: no agent has told it. */
  readonly health: HealthRow | null;
  /** on it, of all that the reader may see, with most memory first. */
  readonly processes: readonly ProcessRow[];
  /** who held it before, of the same, who gave it back last first. */
  readonly earlier: readonly EarlierRow[];
  /** since when that is known: as long as this leader lives. */
  readonly earlierFrom: number;
}

/** How a GPU is, as its driver says. */
export interface HealthRow {
  /** that it takes; and so on, see `DeviceHealth`: what tells what all that is on it */
  readonly watts: number | null;
  /** why it runs below its clocks, in words. */
  readonly slowed: readonly string[] | null;
  readonly nvlinkMibASecond: number | null;
  /** what the driver reported. */
  readonly xids: readonly XidRow[] | null;
  /** errors of its memory since the last reset. */
  readonly uncorrectedEcc: number | null;
  readonly remappedAfterCorrected: number | null;
  readonly remappedAfterUncorrected: number | null;
  readonly remapFailed: boolean;
}

/** An error event of the driver, by its number, and how often since the agent's start. */
export interface XidRow {
  readonly code: number;
  readonly times: number;
}

/** A process on a GPU; `pid`: the node's; `ref`: whose. */
export interface ProcessRow {
  readonly pid: number;
  readonly ref: WorkRef;
  readonly pod: string;
  readonly container: string;
  readonly memoryMib: number | null;
  readonly busy: number | null;
}

/** Who held a GPU before. */
export interface EarlierRow {
  readonly ref: WorkRef;
  /** that one of its pods held of it at most. */
  readonly gpus: number;
  /** of its pods gave it back. */
  readonly pods: number;
  /** when the first of them got it. */
  readonly since: number;
  /** when the last of them gave it back. */
  readonly until: number;
}

/** Those asked for, in the order in which they are served; `total`: that match. */
export interface QueueView {
  readonly at: number;
  readonly lead: Lead;
  readonly reasons: readonly ReasonRow[];
  readonly projects: readonly string[];
  readonly total: number;
  readonly offset: number;
  readonly rows: readonly QueueRow[];
}

/** Who waits. */
export interface QueueRow {
  readonly ref: WorkRef;
  readonly project: string;
  readonly type: string;
  readonly priority: string;
  /** 1 = next of its project; 0: not known. */
  readonly position: number;
  /** GPUs of one pod, as text, such as '0.5' or '8 GiB'. */
  readonly each: string;
  /** that wait. */
  readonly pods: number;
  /** that they ask for in all. */
  readonly gpus: number;
  readonly reason: string;
  readonly message: string;
  readonly since: number;
  /** whether it waits for its owner or an administrator to change something. */
  readonly mends: boolean;
}

/** Those asked for; `phases`: how many of all that the reader may see. */
export interface JobsView {
  readonly at: number;
  readonly lead: Lead;
  readonly phases: Readonly<Record<string, number>>;
  readonly projects: readonly string[];
  readonly total: number;
  readonly offset: number;
  readonly rows: readonly JobRow[];
}

/** A workload in the list. */
export interface JobRow {
  readonly ref: WorkRef;
  readonly project: string;
  readonly type: string;
  readonly phase: 'Failed' | 'Pending' | 'Running' | 'Succeeded' | 'Suspended';
  readonly reason: string;
  readonly message: string;
  /** GPUs of all its pods at once; held: now. */
  readonly asked: number;
  readonly held: number;
  readonly running: number;
  readonly succeeded: number;
  /** running, succeeded and in all. */
  readonly pods: number;
  readonly node: string;
  readonly created: number;
  readonly ended: number | null;
  readonly busy: number | null;
  readonly memoryMib: number | null;
  readonly idleSince: number | null;
  /** the rule of its headline; empty: none. */
  readonly advice: string;
  readonly sweep: boolean;
}

/** The page of one workload. */
export interface JobView {
  readonly at: number;
  readonly lead: Lead;
  readonly row: JobRow;
  /** short words about it: what it asks for, its priority, its image. */
  readonly facts: readonly string[];
  /** the oldest first; `steps_note`: what is not known any more of it. */
  readonly steps: readonly Step[];
  readonly stepsNote: string;
  readonly placed: readonly Placed[];
  /** None: it is no gang of several pods, or nobody knows what they do. */
  readonly slowest: SlowestRow | null;
  readonly beside: readonly BesideRow[];
  readonly advice: readonly AdviceRow[];
  readonly curve: CurveRow | null;
  /** of a gang of several pods. */
  readonly ranks: RanksRow | null;
  readonly used: Used | null;
  /** lines of kubectl for it, by what they do. */
  readonly commands: Readonly<Record<string, string>>;
  /** whether it can be suspended at all: a GPUJob that has not ended. */
  readonly maySuspend: boolean;
  readonly suspended: boolean;
}

/** A moment of a job's life; `kind`: submitted, waits, placed, runs, suspended, ended. */
export interface Step {
  readonly at: number;
  readonly kind: string;
  readonly words: string;
  readonly detail: string;
}

/** A pod that holds GPUs; `busy` and so on of its own processes. */
export interface Placed {
  readonly pod: string;
  readonly role: string;
  readonly node: string;
  readonly devices: readonly number[];
  readonly gpus: number;
  readonly started: number | null;
  readonly busy: number | null;
  readonly memoryMib: number | null;
  readonly capMib: number | null;
  readonly cpuCores: number | null;
  readonly cpuLimit: number | null;
  readonly ramMib: number | null;
  readonly ramLimitMib: number | null;
}

/** For which of its pods the others wait, that use their GPUs more; see `SlowestRank`. */
export interface SlowestRow {
  readonly pod: string;
  readonly mean: number;
  readonly median: number;
}

/** A device that a job is on, with all that is on it. */
export interface BesideRow {
  readonly node: string;
  readonly device: DeviceRow;
}

/**
 * Over a life: a point each `step_seconds`, the first at `start`; ratios, MiB, cores. `cpu_cores`
 * is empty where nothing was ever known of it; `cpu_limit` of what runs now.
 */
export interface CurveRow {
  readonly start: number;
  readonly stepSeconds: number;
  readonly busy: readonly (number | null)[];
  readonly memoryMib: readonly (number | null)[];
  readonly cpuCores: readonly (number | null)[];
  readonly cpuLimit: number | null;
}

/** Over time, as far as this leader saw it: a point each `step_seconds`, from `start` on. */
export interface RanksRow {
  readonly start: number;
  readonly stepSeconds: number;
  readonly pods: readonly RankRow[];
}

/** A pod of a gang, with its use at each point. */
export interface RankRow {
  readonly pod: string;
  readonly busy: readonly (number | null)[];
}

/** What a job did with its GPUs so far, or did. */
export interface Used {
  readonly gpuHours: number;
  readonly usedGpuHours: number | null;
  readonly idleGpuHours: number | null;
  readonly mean: number | null;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly peakMib: number | null;
  readonly capMib: number | null;
}

/** All projects. */
export interface ProjectsView {
  readonly at: number;
  readonly lead: Lead;
  readonly rows: readonly ProjectRow[];
}

/** The page of one project: its row, and what the reader may see of its work. */
export interface ProjectView {
  readonly at: number;
  readonly lead: Lead;
  readonly row: ProjectRow;
  readonly reasons: readonly ReasonRow[];
  readonly holding: readonly JobRow[];
  readonly waiting: readonly QueueRow[];
}

/** All searches. */
export interface SweepsView {
  readonly at: number;
  readonly lead: Lead;
  readonly total: number;
  readonly offset: number;
  readonly rows: readonly SweepRow[];
}

/** A search; `trials` by state: waiting, running, succeeded, pruned, failed. */
export interface SweepRow {
  readonly ref: WorkRef;
  readonly project: string;
  readonly phase: 'Failed' | 'Pending' | 'Running' | 'Succeeded' | 'Suspended';
  readonly objective: string;
  readonly goal: string;
  readonly trials: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly best: Ranked | null;
  readonly message: string;
  readonly created: number;
}

/** A trial that succeeded. */
export interface Ranked {
  readonly trial: number;
  readonly value: number;
  readonly parameters: Readonly<Record<string, string>>;
}

/** The page of one search: the best ten, and what failed last. */
export interface SweepView {
  readonly at: number;
  readonly lead: Lead;
  readonly row: SweepRow;
  readonly top: readonly Ranked[];
  readonly errors: readonly Step[];
  readonly command: string;
}

/** GPUs over time, of the cluster or of one project. */
export interface ChartView {
  readonly at: number;
  /** of the first step. */
  readonly start: number;
  /** of each. */
  readonly stepSeconds: number;
  /** in all (a project: its quota); so are the others, one figure a step. */
  readonly gpus: readonly (number | null)[];
  readonly held: readonly (number | null)[];
  readonly busy: readonly (number | null)[];
  readonly idle: readonly (number | null)[];
  readonly waiting: readonly (number | null)[];
  readonly borrowed: readonly (number | null)[];
  /** what is missing in it, and why; empty: nothing. */
  readonly note: string;
}

/** Who asks. */
export interface Me {
  /** as the API server calls them. */
  readonly user: string;
  /** whether all namespaces may be seen. */
  readonly all: boolean;
  /** those that may be; empty where `all`. */
  readonly namespaces: readonly string[];
  /** whether jobs may be suspended and resumed from here, where the user may. */
  readonly actions: boolean;
  /** of the operator. */
  readonly version: string;
}

/** A question: one of a manifest, nodes like one there is, or another quota of a project. */
export interface WhatIfQuestion {
  readonly manifest: string;
  readonly likeNode: string;
  readonly nodes: number;
  readonly project: string;
  readonly quota: number | null;
}

/** What would be. */
export interface WhatIfAnswer {
  readonly lead: Lead;
  readonly rows: readonly WhatIfRow[];
  readonly omitted: number;
}

/** What would become of one that waits, or of what was pasted. */
export interface WhatIfRow {
  readonly name: string;
  readonly result: string;
  readonly message: string;
  readonly pods: number;
}

/** Why there is no answer, and the way out. */
export interface ProblemView {
  readonly error: string;
}
