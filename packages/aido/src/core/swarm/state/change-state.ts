import { AidoError } from "@aido/sdk/protocol";
import {
  isActive,
  type StoryProgress,
  type SwarmContainer,
  type SwarmState,
  type WorkerStatus,
} from "./swarm-state.ts";

/** What can be done with a state: each makes a new one of it and leaves the given one as it is. */

export interface NewSwarm {
  swarmId: string;
  now: Date;
  /** Also when workers of the swarm before have work ahead of them. */
  force: boolean;
}

export function startSwarm(before: SwarmState | undefined, { swarmId, now, force }: NewSwarm): SwarmState {
  const active = before?.containers.filter(isActive).length ?? 0;
  if (active > 0 && !force) {
    throw new AidoError(
      "SWARM_ACTIVE",
      `There is a swarm with ${active} pending or running container${active === 1 ? "" : "s"}`,
      { hint: "See them with `aido swarm-list`; start anew all the same with `aido swarm-init --force`." },
    );
  }
  const time = now.toISOString();
  return { swarmId, createdAt: time, updatedAt: time, containers: [] };
}

export type NewContainer = Pick<
  SwarmContainer,
  "containerId" | "containerName" | "taskFilePath" | "branchName"
>;

export function addContainer(state: SwarmState, added: NewContainer, now: Date): SwarmState {
  const { containerName } = added;
  if (state.containers.some((container) => container.containerName === containerName)) {
    throw new AidoError("CONTAINER_NAME_TAKEN", `The swarm already has a container ${containerName}`, {
      hint: `Choose another name, or remove it with \`aido swarm-remove ${containerName}\`.`,
    });
  }
  const time = now.toISOString();
  const container: SwarmContainer = {
    containerId: added.containerId,
    containerName,
    taskFilePath: added.taskFilePath,
    branchName: added.branchName,
    status: "pending",
    prUrl: null,
    storyProgress: { total: 0, completed: 0, failed: 0, inProgress: 0, pending: 0 },
    createdAt: time,
    updatedAt: time,
    acpPid: null,
  };
  return { ...state, updatedAt: time, containers: [...state.containers, container] };
}

export interface ContainerChanges {
  /** A worker that was begun anew has another one. */
  containerId?: string | undefined;
  status?: WorkerStatus | undefined;
  prUrl?: string | null | undefined;
  storyProgress?: StoryProgress | undefined;
  acpPid?: number | null | undefined;
}

export function updateContainer(
  state: SwarmState,
  name: string,
  changes: ContainerChanges,
  now: Date,
): SwarmState {
  findContainer(state, name);
  const time = now.toISOString();
  const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
  const containers = state.containers.map((container) =>
    container.containerName === name ? { ...container, ...given, updatedAt: time } : container,
  );
  return { ...state, updatedAt: time, containers };
}

export function removeContainer(state: SwarmState, name: string, now: Date): SwarmState {
  const removed = findContainer(state, name);
  const containers = state.containers.filter((container) => container !== removed);
  return { ...state, updatedAt: now.toISOString(), containers };
}

/** Without those that completed, failed or were stopped; the same state when there are none. */
export function removeEnded(state: SwarmState, now: Date): SwarmState {
  const containers = state.containers.filter(isActive);
  if (containers.length === state.containers.length) return state;
  return { ...state, updatedAt: now.toISOString(), containers };
}

export function findContainer(state: SwarmState, name: string): SwarmContainer {
  const found = state.containers.find((container) => container.containerName === name);
  if (found !== undefined) return found;
  throw new AidoError("CONTAINER_NOT_FOUND", `The swarm has no container ${name}`, {
    hint: "`aido swarm-list` shows all there are.",
  });
}
