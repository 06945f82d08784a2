/** Why a timer or watch is no longer needed. One value for all: making a reason for each would cost more than the timer. */
export const DONE = new Error('no longer needed');
