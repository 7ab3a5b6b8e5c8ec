self:
{
  config,
  lib,
  pkgs,
  ...
}:

let
  cfg = config.services.acme-svc;
  toml = pkgs.formats.toml { };
  every = [
    "acme"
    "admin"
    "worker"
  ];
  roles = lib.intersectLists cfg.roles every;
  # As deploy/systemd has it: without a word for every role, otherwise with those there are.
  serve = [ "serve" ] ++ lib.optionals (roles != every) [ "--role" (lib.concatStringsSep "," roles) ];
  portOf = address: lib.toInt (lib.last (lib.splitString ":" address));
  listens = lib.elem "acme" roles;
  ports =
    [ (portOf cfg.settings.server.bind_address) ]
    ++ lib.optional (cfg.settings.publish.enabled or false) (portOf (cfg.settings.publish.bind_address or "[::]:3003"));
  capability = lib.optional (listens && lib.any (port: port > 0 && port < 1024) ports) "CAP_NET_BIND_SERVICE";
in
{
  options.services.acme-svc = {
    enable = lib.mkEnableOption "acme-svc, an ACME server for an organisation's own clients";

    package = lib.mkOption {
      type = lib.types.package;
      default = self.packages.${pkgs.stdenv.hostPlatform.system}.default;
      defaultText = lib.literalExpression "acme-svc.packages.\${system}.default";
      description = "The package to run.";
    };

    settings = lib.mkOption {
      type = lib.types.submodule {
        freeformType = toml.type;
        options.server.bind_address = lib.mkOption {
          type = lib.types.str;
          default = "[::]:3000";
          description = "Address to listen on.";
        };
      };
      default = { };
      example = lib.literalExpression ''
        {
          server.base_url = "https://acme.corp.example:3000";
          server.tls.enabled = true;
          profiles.default.enabled = true;
        }
      '';
      description = ''
        Content of config.toml; docs/reference/configuration.md lists the keys. It ends up readable by everyone on the machine,
        so secrets belong into {option}`services.acme-svc.environmentFile`.
      '';
    };

    environmentFile = lib.mkOption {
      type = lib.types.nullOr lib.types.path;
      default = null;
      example = "/run/keys/acme-svc";
      description = "File of `ACME_SVC_…=value` lines, which beat the settings.";
    };

    roles = lib.mkOption {
      type = lib.types.nonEmptyListOf (lib.types.enum every);
      default = every;
      example = [ "worker" ];
      description = ''
        What the process of this host does; hosts that share a PostgreSQL database divide the roles among them. A host
        without a worker needs the CA's certificate from one, and never its key.
      '';
    };

    openFirewall = lib.mkOption {
      type = lib.types.bool;
      default = false;
      description = "Open the ports of `settings.server.bind_address` and, if it is enabled, of `settings.publish.bind_address`, where the process has the role `acme`.";
    };
  };

  config = lib.mkIf cfg.enable {
    users.users.acme-svc = {
      isSystemUser = true;
      group = "acme-svc";
    };
    users.groups.acme-svc = { };

    networking.firewall.allowedTCPPorts = lib.mkIf (cfg.openFirewall && listens) ports;

    systemd.services.acme-svc = {
      description = "ACME certificate service";
      wantedBy = [ "multi-user.target" ];
      wants = [ "network-online.target" ];
      after = [
        "network-online.target"
        "postgresql.service"
      ];
      startLimitIntervalSec = 0;
      environment.ACME_SVC_CONFIG = "${toml.generate "acme-svc.toml" cfg.settings}";
      serviceConfig = {
        Type = "exec";
        ExecStart = "${lib.getExe cfg.package} ${lib.concatStringsSep " " serve}";
        ExecReload = "${lib.getExe' pkgs.coreutils "kill"} -HUP $MAINPID";
        User = "acme-svc";
        Group = "acme-svc";
        UMask = "0077";
        StateDirectory = "acme-svc";
        WorkingDirectory = "/var/lib/acme-svc";
        EnvironmentFile = lib.mkIf (cfg.environmentFile != null) cfg.environmentFile;
        Restart = "on-failure";
        RestartSec = 2;
        RestartPreventExitStatus = "2 3";
        # A reload in the first moments of a start ends it, which systemd takes for a good end.
        RestartForceExitStatus = "SIGHUP";
        KillMode = "mixed";
        TimeoutStopSec = 90;
        LimitNOFILE = 65536;
        NoNewPrivileges = true;
        ProtectSystem = "strict";
        ProtectHome = true;
        PrivateTmp = true;
        PrivateDevices = true;
        ProtectKernelTunables = true;
        ProtectKernelModules = true;
        ProtectKernelLogs = true;
        ProtectControlGroups = true;
        ProtectClock = true;
        ProtectHostname = true;
        ProtectProc = "invisible";
        RestrictNamespaces = true;
        RestrictRealtime = true;
        RestrictSUIDSGID = true;
        RemoveIPC = true;
        LockPersonality = true;
        RestrictAddressFamilies = "AF_INET AF_INET6 AF_UNIX AF_NETLINK";
        SystemCallFilter = "@system-service @pkey";
        SystemCallErrorNumber = "EPERM";
        SystemCallArchitectures = "native";
        CapabilityBoundingSet = lib.concatStringsSep " " capability;
        AmbientCapabilities = lib.concatStringsSep " " capability;
      };
    };
  };
}
