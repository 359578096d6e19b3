import { K8s } from '@kinvolk/headlamp-plugin/lib';

const { KubeObject } = K8s.cluster;
const VERSION = 'gpu-scheduler.io/v1alpha1';

// Their `useList` and `useGet` ask the API server, and watch it, with the reader's own login.

export class GPUJob extends KubeObject {
  static override kind = 'GPUJob';
  static override apiName = 'gpujobs';
  static override apiVersion = VERSION;
  static override isNamespaced = true;
}

export class GPUUsage extends KubeObject {
  static override kind = 'GPUUsage';
  static override apiName = 'gpuusages';
  static override apiVersion = VERSION;
  static override isNamespaced = true;
}

export class GPUProject extends KubeObject {
  static override kind = 'GPUProject';
  static override apiName = 'gpuprojects';
  static override apiVersion = VERSION;
  static override isNamespaced = false;
}

export class GPUNode extends KubeObject {
  static override kind = 'GPUNode';
  static override apiName = 'gpunodes';
  static override apiVersion = VERSION;
  static override isNamespaced = false;
}

export type Kind = typeof GPUJob | typeof GPUUsage | typeof GPUProject | typeof GPUNode;
