import { describe, expect, it } from 'vitest';
import type { Asked } from '../../src/read/refusal.ts';
import { refusalOf } from '../../src/read/refusal.ts';

const JOBS: Asked = {
  kind: 'GPUJob',
  plural: 'gpujobs',
  namespaced: true,
  namespaces: [],
  name: '',
};
const PROJECTS: Asked = { ...JOBS, kind: 'GPUProject', plural: 'gpuprojects', namespaced: false };
const refused = (status: number, asked: Asked) => refusalOf({ status, message: 'no' }, asked);

describe('a kind that is not there', () => {
  it('says that it is not installed, and how to see that', () => {
    const { words, command } = refused(404, PROJECTS);
    expect(words).toContain('This cluster has no kind GPUProject');
    expect(command).toBe('kubectl get crd gpuprojects.gpu-scheduler.io');
  });
});

describe('an object that is not there', () => {
  it('is named', () => {
    expect(refused(404, { ...JOBS, namespaces: ['lab'], name: 'gone' }).words).toBe(
      'There is no GPUJob gone in lab.'
    );
  });
});

describe('no right to see', () => {
  it('in all namespaces: choose some', () => {
    const { words, help, command } = refused(403, JOBS);
    expect(words).toBe('You may not list gpujobs in all namespaces.');
    expect(help).toContain('Choose namespaces in which you may');
    expect(command).toBe('kubectl auth can-i list gpujobs.gpu-scheduler.io -A');
  });

  it('in some namespaces: they are named', () => {
    const { words, command } = refused(403, { ...JOBS, namespaces: ['lab', 'speech'] });
    expect(words).toBe('You may not list gpujobs in lab, speech.');
    expect(command).toBe('kubectl auth can-i list gpujobs.gpu-scheduler.io -n lab');
  });

  it('of the whole cluster: who can give it', () => {
    const { words, help, command } = refused(403, PROJECTS);
    expect(words).toBe('You may not list gpuprojects.');
    expect(help).toContain('rbac.inventoryReaders');
    expect(command).toBe('kubectl auth can-i list gpuprojects.gpu-scheduler.io');
  });

  it('of one object', () => {
    expect(refused(403, { ...JOBS, namespaces: ['lab'], name: 'his' }).words).toBe(
      'You may not get gpujobs in lab.'
    );
  });
});

describe('other answers', () => {
  it('401 is a login that is over', () => {
    expect(refused(401, JOBS).words).toContain('your login has expired');
  });

  it('are told in the words of the API server', () => {
    expect(refusalOf({ status: 500, message: 'etcd is away' }, JOBS).words).toBe(
      'The API server gave no gpujobs: etcd is away'
    );
    expect(refusalOf({ message: '' }, JOBS).words).toContain('it did not say why');
  });
});
