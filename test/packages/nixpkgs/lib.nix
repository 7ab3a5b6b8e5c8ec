# The few functions of nixpkgs' lib that nix/ and flake.nix use, with only the features that they need.
rec {
  inherit (builtins)
    any
    attrNames
    concatStringsSep
    elem
    filter
    mapAttrs
    ;
  genAttrs =
    names: value:
    builtins.listToAttrs (
      map (name: {
        inherit name;
        value = value name;
      }) names
    );
  getExe = package: "${package}/bin/${package.meta.mainProgram}";
  getExe' = package: name: "${package}/bin/${name}";
  importJSON = file: builtins.fromJSON (builtins.readFile file);
  intersectLists = wanted: filter (one: elem one wanted);
  last = list: builtins.elemAt list (builtins.length list - 1);
  literalExpression = text: text;
  mkEnableOption = text: { };
  mkIf = condition: content: if condition then content else { };
  mkOption = option: option;
  optional = condition: one: optionals condition [ one ];
  optionalAttrs = condition: set: if condition then set else { };
  optionals = condition: list: if condition then list else [ ];
  splitString = separator: text: filter builtins.isString (builtins.split separator text);
  toInt = builtins.fromJSON;
  fileset = {
    unions = files: files;
    toSource = { root, fileset }: map toString fileset;
  };
  licenses.mit = "MIT";
  platforms.linux = "linux";
  types = {
    bool = "bool";
    package = "package";
    path = "path";
    str = "str";
    enum = words: "enum";
    nonEmptyListOf = type: "nonEmptyListOf";
    nullOr = type: "nullOr";
    submodule = module: "submodule";
  };
}
