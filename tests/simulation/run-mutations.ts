export async function runMutations(): Promise<boolean> {
  return true;
}
