import type { World } from './world.ts';
import { cluster } from './worlds/cluster.ts';
import { large, moving } from './worlds/large.ts';
import { empty, hostile, silent, tenant, unfollowed, unused } from './worlds/others.ts';

/** The worlds by name: who logs in with the name as their token sees that one. */
export const WORLDS: Readonly<Record<string, () => World>> = {
  cluster,
  large,
  moving,
  empty,
  unused,
  unfollowed,
  silent,
  tenant,
  hostile,
};
