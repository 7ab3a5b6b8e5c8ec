# What package-lock.json says, with the address of each package. The file leaves addresses out: npm's registry has one for
# every name and version, and what comes from there is held to the digest in the file.
lib:

let
  lock = lib.importJSON ../package-lock.json;

  located =
    path: module:
    let
      name = lib.last (lib.splitString "node_modules/" path);
      file = lib.last (lib.splitString "/" name);
    in
    module
    // lib.optionalAttrs (module ? integrity) {
      resolved = "https://registry.npmjs.org/${name}/-/${file}-${module.version}.tgz";
    };

  # The workspace that brings a Node.js to a clone, and the Node.js itself; nixpkgs has its own.
  runtime = lib.importJSON ../runtime/package.json;
  places = [
    "runtime"
    "node_modules/${runtime.name}"
  ]
  ++ map (name: "node_modules/${name}") (lib.attrNames runtime.optionalDependencies);
  packages = removeAttrs lock.packages places;
in
lock
// {
  packages = lib.mapAttrs located (packages // { "" = removeAttrs packages."" [ "workspaces" ]; });
}
