// Generated from crds/ by `make headlamp-types`; which fields: hack/headlamp_types/kinds.py.

import type { Metadata } from './metadata.ts';

/** The number to make small or large, out of each trial's result. */
export interface GPUJobSpecSweepObjective {
  /** Name of the number in the trial's result. */
  readonly metric: string;
  /** minimize or maximize. */
  readonly goal?: 'minimize' | 'maximize';
  /** A value as good as this ends the search: no further trial starts. */
  readonly target?: number;
  /** Other numbers of the result to keep beside the objective. */
  readonly additionalMetrics?: readonly string[];
}

/** A search over parameters: each pod is a trial with parameters of its own. */
export interface GPUJobSpecSweep {
  /**
   * grid (all combinations), random, halton (random but even), list (trials says them all) or tpe
   * (learns from results; not reproducible).
   */
  readonly algorithm: 'grid' | 'random' | 'halton' | 'list' | 'tpe';
  /** The number to make small or large, out of each trial's result. */
  readonly objective?: GPUJobSpecSweepObjective;
}

/** What is wanted. */
export interface GPUJobSpec {
  /** training, or interactive (goes first, is not preempted inside the quota). */
  readonly type?: 'training' | 'interactive';
  /** Higher goes first inside the project; 0 to 100. */
  readonly priority?: number;
  /** true stops the pods and gives the GPUs back. */
  readonly suspend?: boolean;
  /** A search over parameters: each pod is a trial with parameters of its own. */
  readonly sweep?: GPUJobSpecSweep;
}

/** Pods by state. */
export interface GPUJobStatusPods {
  /** Indexes that wait for a GPU or to start. */
  readonly pending?: number;
  /** Indexes whose pod runs. */
  readonly running?: number;
  /** Indexes that are done. */
  readonly succeeded?: number;
  /** Indexes that used up their retries. */
  readonly failed?: number;
}

/** Where one pod holds GPUs. */
export interface GPUJobStatusPlacement {
  /** Name of the pod. */
  readonly pod: string;
  /** Its node. */
  readonly node: string;
  /** Its GPUs. */
  readonly devices: readonly string[];
  /** Memory cap per GPU, MiB; of several containers the sum. */
  readonly memoryMiB: number;
  /**
   * What enforces the caps of its containers now, of several the weakest: kernel, interposer,
   * framework, none, unprotected; absent where no agent reports.
   */
  readonly isolation?: string;
  /**
   * Share of time, in tens of percent, in which its containers had kernels run on its GPUs: the
   * mean of five minutes, of several containers the sum, at most 100.
   */
  readonly computePercent?: number;
}

/** GPUs that are held for a pod which has no place yet. */
export interface GPUJobStatusHeldRoom {
  /** Node that has them. */
  readonly node: string;
  /** GPU. */
  readonly device: string;
  /** Thousandths of it. */
  readonly milliGPU: number;
  /** nominated: for pods that their Job is to make. */
  readonly heldAs: 'nominated' | 'reserved';
}

/** Trials by state. */
export interface GPUJobStatusSweepCounts {
  /** Trials that hold GPUs. */
  readonly running?: number;
  /** Trials with a result. */
  readonly succeeded?: number;
  /** Trials that were stopped early. */
  readonly pruned?: number;
  /** Trials that used up their retries. */
  readonly failed?: number;
  /** Trials that ended well without a usable result; they count as failed. */
  readonly resultMissing?: number;
  /** Trials whose objective is NaN or infinite; they count as failed. */
  readonly objectiveNotFinite?: number;
}

/** The best trial so far; of equal ones that with the lowest number. */
export interface GPUJobStatusSweepBest {
  /** Its number, from 0. */
  readonly trial: number;
  /** Its objective. */
  readonly value: number;
  /** What it was given; long values are cut. */
  readonly parameters?: Readonly<Record<string, string>>;
}

/** A trial that succeeded. */
export interface GPUJobStatusSweepTop {
  /** Its number, from 0. */
  readonly trial: number;
  /** Its objective. */
  readonly value: number;
  /** What it was given; long values are cut. */
  readonly parameters?: Readonly<Record<string, string>>;
}

/** A trial that failed, or gave no usable result. */
export interface GPUJobStatusSweepError {
  /** Its number, from 0. */
  readonly trial: number;
  /** Failed, ResultMissing or ObjectiveNotFinite. */
  readonly state: string;
  /** Why. */
  readonly message?: string;
}

/** Of a sweep: what came of its trials. */
export interface GPUJobStatusSweep {
  /** Trials in all. */
  readonly trials: number;
  /** Trials by state. */
  readonly counts: GPUJobStatusSweepCounts;
  /** The best trial so far; of equal ones that with the lowest number. */
  readonly best?: GPUJobStatusSweepBest;
  /** The best ten, the best first. */
  readonly top?: readonly GPUJobStatusSweepTop[];
  /** Failed trials with the highest numbers, the highest first. */
  readonly errors?: readonly GPUJobStatusSweepError[];
  /** What of the results is lost, with numbers; empty when nothing is. */
  readonly lostResults?: string;
  /** A trial is as good as objective.target. */
  readonly targetReached?: boolean;
}

/** One thing to change. */
export interface GPUJobStatusAdvice {
  /** Which rule of docs/advice.md says so. */
  readonly rule: string;
  /** Since when it is said. */
  readonly since?: string;
  /** What was seen then, and what to change. */
  readonly message: string;
  /** The line that does it; empty where none does. */
  readonly command?: string;
}

/** Sums over the pods of one role. */
export interface GPUJobStatusUsageRole {
  /** Of the role. */
  readonly name: string;
  /** GPUs × seconds that its pods held. */
  readonly gpuSeconds: number;
  /** Of these used; absent: the driver cannot tell. */
  readonly usedGPUSeconds?: number;
  /** Share of time with a kernel of it. */
  readonly meanPercent?: number;
  /** Most memory that one container held on one GPU, MiB. */
  readonly peakMiB?: number;
}

/** What it did with its GPUs; once it has ended, and where agents say so. */
export interface GPUJobStatusUsage {
  /** Shares × seconds in which its pods held GPUs. */
  readonly gpuSeconds: number;
  /** Of these used: time with a kernel of it, at most the share; absent: the driver cannot tell. */
  readonly usedGPUSeconds?: number;
  /** Of these without any kernel. */
  readonly idleGPUSeconds?: number;
  /** Share of time with a kernel of it. */
  readonly meanPercent?: number;
  /** Half of the time it was at most this. */
  readonly p50Percent?: number;
  /** For 95 % of the time it was at most this. */
  readonly p95Percent?: number;
  /**
   * Seconds of its pods in which they were busy for less than 10 % of the time, less than 20 %, and
   * so on.
   */
  readonly secondsByTenth?: readonly number[];
  /** Most memory that one container held on one GPU, MiB. */
  readonly peakMiB?: number;
  /** What that container might hold, MiB. */
  readonly capMiB?: number;
  /** The same by role, in the order of their names; absent: it has none. */
  readonly roles?: readonly GPUJobStatusUsageRole[];
}

/** One aspect of an object's state. */
export interface GPUJobStatusCondition {
  /** Aspect that this condition reports. */
  readonly type: string;
  /** Whether it holds. */
  readonly status: 'True' | 'False' | 'Unknown';
  /** metadata.generation that was judged. */
  readonly observedGeneration?: number;
  /** When the status last changed. */
  readonly lastTransitionTime: string;
  /** Machine-readable reason, one word. */
  readonly reason: string;
  /** Sentence for people. */
  readonly message?: string;
}

/** What is. */
export interface GPUJobStatus {
  /** metadata.generation judged here. */
  readonly observedGeneration?: number;
  /** Where the job is in its life. */
  readonly phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Suspended';
  /** Why it does not run, or why it failed; empty while it runs. */
  readonly reason?: string;
  /** The same as a sentence with numbers. */
  readonly message?: string;
  /**
   * The first pod of it that failed: when, which index and container, how it ended and what it said
   * last.
   */
  readonly firstFailure?: string;
  /** namespace/name of the GPUJob for which pods of this one had to go; until they run again. */
  readonly preemptedBy?: string;
  /** How often a pod of it was evicted for others; absent: never. */
  readonly evictions?: number;
  /**
   * GPU time that was lost with those, counted when the pods had gone: what they had done since
   * they started, or since their last checkpoint (gpu-scheduler.io/checkpointed-at).
   */
  readonly lostGPUSeconds?: number;
  /** 1 = next of its project to start; absent when nothing waits. */
  readonly queuePosition?: number;
  /** Pods by state. */
  readonly pods?: GPUJobStatusPods;
  /** GPUs held now. */
  readonly allocatedGPU?: string;
  /** Where pods run: the newest eight. */
  readonly placements?: readonly GPUJobStatusPlacement[];
  /**
   * GPUs that are held for pods that have no place yet, or do not exist: the first sixteen; written
   * where that lasts for seconds.
   */
  readonly heldRoom?: readonly GPUJobStatusHeldRoom[];
  /** Of a sweep: what came of its trials. */
  readonly sweep?: GPUJobStatusSweep;
  /** What to change about it, by what its GPUs were seen doing; the first matters most. */
  readonly advice?: readonly GPUJobStatusAdvice[];
  /** What it did with its GPUs; once it has ended, and where agents say so. */
  readonly usage?: GPUJobStatusUsage;
  /**
   * Accepted, Placed, Complete, Failed; with agents Protected (memory caps are enforced and kept)
   * and DevicesHealthy; CannotStart while a pod with a place cannot start; InDoubt while nobody
   * gives way to it; SetAside when the planner could not work with it.
   */
  readonly conditions?: readonly GPUJobStatusCondition[];
  /** The GPUProject that is charged. */
  readonly project?: string;
  /** GPUs, or GPU memory, held / asked for by the pods at once. */
  readonly gpu?: string;
  /** Pods running / succeeded / in all. */
  readonly podSummary?: string;
  /** Where pods run: a node, or a node and +N more. */
  readonly node?: string;
}

/** Pods that each need GPUs, or a share of one. */
export interface GPUJob {
  readonly metadata: Metadata;
  /** What is wanted. */
  readonly spec: GPUJobSpec;
  /** What is. */
  readonly status?: GPUJobStatus;
}

/** What the project is entitled to. */
export interface GPUProjectSpec {
  /** Namespaces whose GPUJobs are charged to this project; each belongs to one project only. */
  readonly namespaces: readonly string[];
  /** Guaranteed GPUs, at most three decimals, for example 2.5. */
  readonly quota: number;
  /** Guaranteed GPUs of a model, for example A100: 2. */
  readonly quotaByModel?: Readonly<Record<string, number>>;
  /** Most GPUs held at once, borrowed ones included. */
  readonly limit?: number;
  /** Share of what others leave idle; 0 = never above quota. */
  readonly weight?: number;
  /**
   * What happens to a container that holds more device memory than its cap for three samples: warn
   * (Event and condition), kill (its processes on the GPU), evict (the pod; no retry is charged).
   */
  readonly overCapPolicy?: 'warn' | 'kill' | 'evict';
  /**
   * A pod of the project that has run for less is not evicted for another project's fair share; for
   * a quota, or a higher priority of its own project, it may be.
   */
  readonly minRuntimeSeconds?: number;
  /**
   * A pod that has its GPUs and whose containers have not started for so long gives them back and
   * is tried again later; no retry is charged.
   */
  readonly startTimeoutSeconds?: number;
}

/** What the project holds of a model that its quotaByModel names. */
export interface GPUProjectStatusByModel {
  /** The model, as in quotaByModel. */
  readonly model: string;
  /** Guaranteed GPUs of it. */
  readonly quotaGPU?: string;
  /** GPUs of it held by pods that have not ended. */
  readonly allocatedGPU?: string;
  /** GPUs of it that the project should hold now. */
  readonly fairShareGPU?: string;
}

/** GPUJobs by state. */
export interface GPUProjectStatusJobs {
  /** GPUJobs with a pod that runs. */
  readonly running?: number;
  /** Jobs with pods that wait for a place, those that cannot start as they are included. */
  readonly pending?: number;
}

/** One aspect of an object's state. */
export interface GPUProjectStatusCondition {
  /** Aspect that this condition reports. */
  readonly type: string;
  /** Whether it holds. */
  readonly status: 'True' | 'False' | 'Unknown';
  /** metadata.generation that was judged. */
  readonly observedGeneration?: number;
  /** When the status last changed. */
  readonly lastTransitionTime: string;
  /** Machine-readable reason, one word. */
  readonly reason: string;
  /** Sentence for people. */
  readonly message?: string;
}

/** What the project holds. */
export interface GPUProjectStatus {
  /** metadata.generation judged here. */
  readonly observedGeneration?: number;
  /** GPUs held by pods that have not ended. */
  readonly allocatedGPU?: string;
  /** Of these, GPUs above the quota. */
  readonly borrowedGPU?: string;
  /**
   * GPUs that it should hold now: what it asks for up to its quota, and its part by weight of what
   * is left.
   */
  readonly fairShareGPU?: string;
  /** The same of each model that quotaByModel names. */
  readonly byModel?: readonly GPUProjectStatusByModel[];
  /** GPUs that waiting pods ask for, as far as they can start as they are. */
  readonly pendingGPU?: string;
  /** GPUJobs by state. */
  readonly jobs?: GPUProjectStatusJobs;
  /** Accepted: False when a namespace is claimed by another project. */
  readonly conditions?: readonly GPUProjectStatusCondition[];
}

/** The GPUs that the GPUJobs of some namespaces may hold. */
export interface GPUProject {
  readonly metadata: Metadata;
  /** What the project is entitled to. */
  readonly spec: GPUProjectSpec;
  /** What the project holds. */
  readonly status?: GPUProjectStatus;
}

/** A process on a GPU that belongs to no allocation. */
export interface GPUNodeStatusDeviceForeignProcess {
  /** Process id on the node. */
  readonly pid: number;
  /** Its command. */
  readonly name: string;
  /** Device memory, MiB; absent = unknown. */
  readonly usedMiB?: number;
}

/** One GPU. */
export interface GPUNodeStatusDevice {
  /** NVIDIA's identifier, GPU-… */
  readonly uuid: string;
  /** Number on the node. */
  readonly index: number;
  /** Product name. */
  readonly model: string;
  /** Memory in all, MiB. */
  readonly memoryMiB: number;
  /** Memory that programs can use, MiB; 0 = not known. */
  readonly usableMiB: number;
  /** CUDA compute capability. */
  readonly computeCapability: string;
  /** false: takes no new pods. */
  readonly healthy?: boolean;
  /** Why it is not healthy: XID, ECC, lost. */
  readonly message?: string;
  /** What a CUDA context takes, MiB, as measured here; absent = not yet. */
  readonly contextMiB?: number;
  /** Processes of nobody's allocation; while there are any, no new pods. */
  readonly foreignProcesses?: readonly GPUNodeStatusDeviceForeignProcess[];
}

/** What the agent found. */
export interface GPUNodeStatus {
  /** GPUs, by index. */
  readonly devices?: readonly GPUNodeStatusDevice[];
}

/** The GPUs of one node, written by the agent that runs there. */
export interface GPUNode {
  readonly metadata: Metadata;
  /** What the agent found. */
  readonly status?: GPUNodeStatus;
}

/** Use of its GPUs. */
export interface GPUUsageStatusWorkloadBusy {
  /** Of the last ten seconds. */
  readonly now?: number;
  /** Since it began. */
  readonly mean?: number;
  /** Half of the time it was at most this. */
  readonly p50?: number;
  /** For 95 % of the time it was at most this. */
  readonly p95?: number;
}

/** Device memory. */
export interface GPUUsageStatusWorkloadMemoryMiB {
  /** In use. */
  readonly now?: number;
  /** Most that one container held on one GPU. */
  readonly peak?: number;
  /** What that container may hold there. */
  readonly cap?: number;
}

/** CPU and memory beside it. */
export interface GPUUsageStatusWorkloadHost {
  /** Cores in use, thousandths. */
  readonly cpuMilli?: number;
  /** Its limits; absent: one has none. */
  readonly cpuLimitMilli?: number;
  /** Memory in use, MiB. */
  readonly ramMiB?: number;
  /** Its limits; absent: one has none. */
  readonly ramLimitMiB?: number;
}

/** One thing to change. */
export interface GPUUsageStatusWorkloadAdvice {
  /** Which rule of docs/advice.md says so. */
  readonly rule: string;
  /** Since when it is said. */
  readonly since?: string;
  /** What was seen then, and what to change. */
  readonly message: string;
  /** The line that does it; empty where none does. */
  readonly command?: string;
}

/** An Event that spoke of a workload. */
export interface GPUUsageStatusWorkloadAdviceEvent {
  /** Of which rule. */
  readonly rule: string;
  /** When. */
  readonly at: string;
}

/** Use over its life. */
export interface GPUUsageStatusWorkloadCurve {
  /** Between two points. */
  readonly stepSeconds: number;
  /** Mean of each step. */
  readonly busyPercent: readonly number[];
  /** Most in each step, of one GPU. */
  readonly memoryMiB: readonly number[];
  /** Of one core, as seen once a minute: 250 is two and a half; absent: unknown. */
  readonly cpuPercent?: readonly number[];
}

/** Sums over the pods of one role. */
export interface GPUUsageStatusWorkloadRole {
  /** Of the role. */
  readonly name: string;
  /** GPUs × seconds that its pods held. */
  readonly gpuSeconds: number;
  /** Of these used; absent: the driver cannot tell. */
  readonly usedGPUSeconds?: number;
  /** Share of time with a kernel of it. */
  readonly meanPercent?: number;
  /** Most memory that one container held on one GPU, MiB. */
  readonly peakMiB?: number;
}

/** For whom the others wait; absent: it is no gang of several pods. */
export interface GPUUsageStatusWorkloadSlowestRank {
  /** Its name. */
  readonly pod: string;
  /** Share of time with a kernel, since it began. */
  readonly meanPercent: number;
  /** The same of half of the ranks is at most this. */
  readonly medianPercent: number;
  /** Pods whose use is known. */
  readonly ranks: number;
}

/** A GPUJob, or who owns pods that ask for a share by themselves. */
export interface GPUUsageStatusWorkload {
  /** GPUJob, Deployment, StatefulSet, Pod … */
  readonly kind: string;
  /** Its name. */
  readonly name: string;
  /** Of a GPUJob. */
  readonly uid?: string;
  /** The GPUProject that is charged. */
  readonly project?: string;
  /** What it is for, which decides what advice it can get. */
  readonly type?: 'training' | 'interactive' | 'service';
  /** Whether it holds GPUs now. */
  readonly state: 'Running' | 'Ended';
  /** Pods that hold GPUs; of one that ended: that held some. */
  readonly pods?: number;
  /** GPUs that it holds; of one that ended: held at most. */
  readonly gpus?: number;
  /** When it got its first GPU. */
  readonly startedAt?: string;
  /** When it gave back the last. */
  readonly endedAt?: string;
  /** GPUs × seconds that it held. */
  readonly gpuSeconds?: number;
  /** Of these used: time with a kernel, at most the share; absent: not known. */
  readonly usedGPUSeconds?: number;
  /** Use of its GPUs. */
  readonly busy?: GPUUsageStatusWorkloadBusy;
  /** Device memory. */
  readonly memoryMiB?: GPUUsageStatusWorkloadMemoryMiB;
  /** CPU and memory beside it. */
  readonly host?: GPUUsageStatusWorkloadHost;
  /** No kernel of it was seen since then; absent: it is not idle. */
  readonly idleSince?: string;
  /** What to change; the first matters most. */
  readonly advice?: readonly GPUUsageStatusWorkloadAdvice[];
  /** When the first of it, or silence after it, began: it stays for an hour. */
  readonly adviceSince?: string;
  /** Events of the last day, one a rule. */
  readonly adviceEvents?: readonly GPUUsageStatusWorkloadAdviceEvent[];
  /** Use over its life. */
  readonly curve?: GPUUsageStatusWorkloadCurve;
  /** Its sums by role, in the order of their names; absent: it has none. */
  readonly roles?: readonly GPUUsageStatusWorkloadRole[];
  /** For whom the others wait; absent: it is no gang of several pods. */
  readonly slowestRank?: GPUUsageStatusWorkloadSlowestRank;
}

/** What was seen. */
export interface GPUUsageStatus {
  /** Of which moment these figures are. */
  readonly observedAt?: string;
  /** GPUs that the namespace holds. */
  readonly gpus?: number;
  /** Those that run, and those that ended in the last seven days. */
  readonly workloads?: readonly GPUUsageStatusWorkload[];
  /** Workloads that are left out, as the object would be too large: the least. */
  readonly omitted?: number;
}

/** What the work in a namespace does with its GPUs, written by the operator. */
export interface GPUUsage {
  readonly metadata: Metadata;
  /** What was seen. */
  readonly status?: GPUUsageStatus;
}
