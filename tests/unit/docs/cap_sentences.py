"""Which test holds each sentence of docs/what-a-cap-guarantees.md.

A sentence is named by its beginning. What stands with it: tests, as ``tier/file.py::name`` below
tests/ or ``charts/…yaml::what it is``; or, in words, why no test of ours can hold it.
"""

CHART = "charts/gpu-scheduler/tests/agent_test.yaml"

NVIDIAS = "said of NVIDIA's driver, and seen on hardware alone: make gpu-check tries what it can"
LIMIT = "says what is not prevented; there is nothing to hold"
READ_ON = "leads to what follows"

SENTENCES: dict[str, tuple[str, ...] | str] = {
    "Each GPU container of a GPUJob, native sidecars": (
        "e2e/test_caps.py::test_a_greedy_job_runs_out_of_its_share_and_its_neighbour_does_not_notice",
        "e2e/test_sidecars.py::test_a_sidecar_sees_its_gpu_and_keeps_its_cap",
    ),
    "This page says what stands behind": READ_ON,
    # the layers
    "kernel | NVIDIA's driver": (
        "native/test_agent_layers.py::test_the_drivers_limit_stops_a_container_and_nobody_else",
        "unit/agent/test_kernel_limits.py::test_where_there_are_no_limits_it_says_why",
    ),
    "interposer | libgpucap": (
        "native/test_gpucap_rows.py::test_row_ends_at_the_cap",
        "native/test_gpucap_views.py::test_views_show_the_cap",
        "native/test_caps_programs.py::test_programs_are_never_above_their_cap_and_leave_nothing",
        "native/test_gpucap_preload_file.py::test_a_line_of_the_environment_moves_nothing",
        "native/test_gpucap_preload_file.py"
        "::test_a_limit_that_is_there_and_holds_no_number_gives_out_nothing",
        "native/test_agent_look.py"
        "::test_who_gets_past_the_library_is_called_unprotected_within_three_looks",
    ),
    "framework | the framework itself": (
        "unit/jobs/test_framework.py::test_cupy_is_told_the_cap_in_bytes",
        "e2e/test_caps.py::test_a_job_that_opts_out_is_told_its_cap_and_nothing_is_loaded",
    ),
    "none | nobody": ("unit/agent/test_isolation.py::test_the_layer_in_place",),
    "unprotected | nobody, though": (
        "unit/agent/test_isolation.py::test_the_message_names_the_process",
        "native/test_agent_look.py::test_a_process_without_it_is_found_at_the_first_look",
    ),
    "Beside every layer runs the watchdog": (
        "native/test_agent_look.py"
        "::test_an_evader_is_over_its_cap_within_three_looks_and_its_neighbour_is_not",
        f"{CHART}::passes settings on",
    ),
    "A container above its cap (and a tolerance": (
        "unit/agent/test_watchdog.py::test_three_looks_in_a_row_are_needed",
        "unit/agent/test_watchdog.py::test_each_process_may_have_a_context_above_the_cap",
    ),
    "warn | An Event": (
        "api/test_isolation.py::test_under_policy_warn_a_pod_above_its_cap_stays",
        "e2e/test_watchdog.py::test_an_evader_is_reported_with_numbers_and_left_alone_under_warn",
    ),
    "kill | The agent kills": (
        "e2e/test_watchdog.py::test_an_evader_loses_its_processes_under_kill",
        "native/test_agent_look.py::test_the_policy_kill_ends_the_evader_and_nobody_else",
    ),
    "evict | The pod is evicted": (
        "api/test_isolation.py::test_under_policy_evict_it_goes_without_a_retry_charged",
        "e2e/test_watchdog.py"
        "::test_an_evader_is_evicted_under_that_policy_and_nobody_else_is_touched",
    ),
    "absent | As warn": (
        "unit/runtime/eviction/test_overcap.py"
        "::test_by_default_an_excess_that_goes_on_for_a_minute_ends_in_an_eviction",
        "unit/runtime/eviction/test_overcap.py::test_by_default_short_excesses_are_only_counted",
    ),
    "The watchdog acts after the fact": LIMIT,
    "In the seconds before, a neighbour": LIMIT,
    "placements[].isolation is what the agent sees": (
        "api/test_isolation.py::test_the_status_shows_what_enforces_the_cap",
        "unit/state/nodes/test_agents.py::test_a_pod_is_as_well_off_as_its_worst_container",
        "unit/runtime/status/test_protection.py"
        "::test_without_an_agent_there_is_neither_condition_nor_layer",
    ),
    "Conditions of a GPUJob, each with an Event": (
        "unit/runtime/status/test_protection.py::test_events_tell_each_turn_for_the_worse_once",
    ),
    "Protected | OverCap": (
        "unit/runtime/status/test_protection.py::test_an_excess_comes_first_with_its_numbers",
        "unit/runtime/status/test_protection.py::test_a_container_without_its_layer_is_unprotected",
    ),
    "DevicesHealthy | A GPU that": (
        "api/test_isolation.py::test_an_unhealthy_device_takes_no_pods_and_its_holders_are_told",
    ),
    "Where the self-test of interposer failed": (
        "unit/core/test_failed_isolation.py"
        "::test_only_who_shares_a_gpu_behind_the_level_is_kept_away",
        "unit/agent/test_selftest.py::test_a_layer_has_failed_where_no_better_one_passed",
        "unit/cli/test_check.py::test_what_is_missing_is_said_with_what_mends_it",
    ),
    "What runs there stays, pods with whole GPUs": (
        "api/test_isolation.py::test_a_node_whose_self_test_failed_keeps_what_runs_and_takes_no_more"
        "_that_need_the_level",
    ),
    "A node that passes again counts after ten minutes": (
        "unit/agent/test_agent.py::test_a_node_whose_self_test_flaps_goes_on_failing",
    ),
    "A test that could not be done closes nothing": (
        "native/test_agent_layers.py::test_on_a_full_device_it_proves_nothing",
        "unit/agent/test_selftest.py::test_a_layer_has_failed_where_no_better_one_passed",
    ),
    "Protected is absent without an agent": (
        "unit/runtime/status/test_protection.py"
        "::test_without_an_agent_there_is_neither_condition_nor_layer",
        "unit/state/nodes/test_agents.py"
        "::test_reports_of_a_silent_agent_do_not_count_until_it_is_heard_again",
    ),
    "When an agent's Lease runs out": (
        "api/test_isolation.py"
        "::test_when_the_agents_lease_runs_out_no_new_pods_come_and_running_ones_stay",
    ),
    "A GPU with processes that belong to no allocation": (
        "api/test_isolation.py::test_a_device_that_is_used_past_us_takes_no_pods",
    ),
    # what the interposer does not guarantee
    "Programs that do not load it: A statically linked": (
        "native/test_agent_look.py::test_a_process_without_it_is_found_at_the_first_look",
        "e2e/test_watchdog.py::test_a_program_without_the_library_is_reported_within_ten_seconds",
    ),
    "So does a Nix image": LIMIT,
    "Such a program takes what it likes": (
        "e2e/test_watchdog.py::test_a_program_without_the_library_is_reported_within_ten_seconds",
    ),
    "Somebody who wants out: The library is loaded": (
        "native/test_gpucap_preload_file.py::test_an_empty_environment_keeps_the_cap",
        "e2e/test_caps.py::test_a_shell_without_an_environment_keeps_the_cap",
        "unit/jobs/test_cap.py::test_a_gpu_container_gets_library_preload_file_and_a_state_folder",
    ),
    "But root with CAP_SYS_ADMIN": LIMIT,
    "It guards against accidents": LIMIT,
    "For that use whole GPUs or MIG": LIMIT,
    "Ephemeral containers: One that kubectl debug": (
        "e2e/test_sidecars.py::test_an_ephemeral_container_on_its_pods_gpu_is_named",
    ),
    "The agent names it: Unprotected": (
        "e2e/test_sidecars.py::test_an_ephemeral_container_on_its_pods_gpu_is_named",
        "unit/agent/test_isolation.py"
        "::test_a_process_of_an_ephemeral_container_is_told_of_whatever_holds_the_others",
    ),
    "The ledger: Processes of a container add up": (
        "native/test_gpucap_processes.py::test_sum_of_processes_stays_within_the_cap",
        "unit/jobs/test_cap.py::test_a_gpu_container_gets_library_preload_file_and_a_state_folder",
    ),
    "One that is damaged is made anew": (
        "native/test_gpucap_ledger.py::test_garbage",
        "native/test_gpucap_ledger.py::test_damage_while_it_is_in_use",
        "native/test_gpucap_ledger.py::test_read_only",
        "native/test_gpucap_ledger.py::test_full_disk",
    ),
    "The agent compares it with what NVML shows": (
        "native/test_agent_look.py"
        "::test_the_librarys_estimate_of_a_context_is_replaced_by_what_nvml_shows",
    ),
    "Where the library finds the limit file and no state folder": (
        "native/test_gpucap_preload_file.py"
        "::test_a_container_without_its_state_folder_gives_out_nothing_and_says_why",
        "native/test_gpucap_ledger.py::test_a_folder_that_is_not_there",
        "native/test_gpucap_limits.py::test_without_a_source_there_is_no_cap",
    ),
    "Processes in another PID namespace: They count": (
        "native/test_gpucap_processes.py::test_a_nested_namespace_shares_the_cap",
        "native/test_gpucap_closed.py::test_whoever_lives_in_other_namespaces_is_not_taken_for_dead",
    ),
    "One that closes the library's descriptor": (
        "native/test_gpucap_closed.py"
        "::test_a_process_that_closed_its_descriptors_is_not_taken_for_dead",
    ),
    "Programs built with AddressSanitizer": (
        "native/test_gpucap_resolution.py::test_beside_a_sanitizer",
    ),
    "Contexts and modules: What a CUDA context costs": NVIDIAS,
    "Each is charged what the agent measured": (
        "native/test_gpucap_views.py::test_a_context_is_charged_a_reserve",
        "native/test_gpucap_contexts.py"
        "::test_without_a_figure_that_can_be_true_the_usual_one_is_charged",
        "e2e/test_caps.py::test_later_containers_are_told_what_a_context_takes",
        "native/test_gpucap_processes.py::test_context_bytes_of_the_agent_count",
    ),
    "Pools: A stream-ordered pool grows": (
        "native/test_gpucap_pools.py::test_what_pools_take_is_charged_or_refused",
        "native/test_gpucap_pools.py::test_a_promised_part_of_a_chunk_keeps_the_chunk",
    ),
    "A library that is closed: A program": (
        "native/test_gpucap_reopened.py::test_what_was_held_when_it_was_closed_stays_charged",
        "native/test_gpucap_reopened.py::test_the_cap_holds_in_the_driver_that_was_opened_again",
        "native/test_caps_programs.py"
        "::test_what_a_closed_driver_held_stays_charged_whatever_the_next_one_does",
    ),
    "Compute time: Nothing limits": LIMIT,
    "Bandwidth: Device memory": LIMIT,
    "The machine's memory that the GPU uses in place": NVIDIAS,
    "The driver takes them back when somebody": NVIDIAS,
    "uvm_disable_hmm=1 of the module": NVIDIAS,
    "Managed memory is charged in full": ("native/test_gpucap_rows.py::test_row_ends_at_the_cap",),
    "Host memory: Pinned memory": (
        "native/test_gpucap_rows.py::test_pinned_memory_and_hints_are_charged_to_nobody",
    ),
    "Faults: Some faults": LIMIT,
    "MPS: Clients of an MPS server": NVIDIAS,
    "Caps through MPS are not supported": LIMIT,
    "Side channels: Who shares a GPU": LIMIT,
    "Nothing here prevents that": LIMIT,
    "Secrets: The cap is about amounts": LIMIT,
    "That freed device memory is cleared": NVIDIAS,
    "The driver's own limit (kernel) leaves managed memory out": NVIDIAS,
    "It is set as soon as the kubelet names a container": (
        "unit/agent/test_agent.py::test_a_new_container_gets_the_drivers_limit_between_two_looks",
        "unit/agent/test_kernel_limits.py::test_a_limit_that_came_after_a_process_is_not_relied_on",
    ),
    # compute time
    "A share of a GPU is a share of its memory": LIMIT,
    "Of its time nobody is given or refused any": NVIDIAS,
    "So a job of 0.3 has the whole GPU's time": NVIDIAS,
    "A container with several busy processes": NVIDIAS,
    "A kernel that runs long is interrupted": NVIDIAS,
    "Kernels of different processes do not run": NVIDIAS,
    "What each container really had is measured": (
        "unit/runtime/status/test_protection.py::test_placements_say_how_much_time_a_pod_had",
        "unit/state/nodes/test_agents.py::test_the_shares_of_time_of_a_pods_containers_add_up",
    ),
    "It is the share of time in which at least one kernel": (
        "native/test_agent_nvml.py::test_how_busy_a_process_is",
    ),
    "A small kernel that runs all the time reads 100": NVIDIAS,
    "Of several GPUs it is the mean": (
        "unit/agent/test_compute_share.py::test_of_several_devices_the_mean_is_told",
    ),
    "The agent asks every ten seconds or so": (
        "unit/agent/test_compute_share.py::test_an_old_answer_of_the_driver_counts_once",
    ),
    "How much of that time an answer covers": NVIDIAS,
    "The figure is the mean of the answers": (
        "unit/agent/test_compute_share.py::test_it_is_told_after_a_minute_and_not_before",
        "unit/agent/test_compute_share.py::test_of_one_look_nothing_is_told",
    ),
    "It is told anew only where it differs": (
        "unit/agent/test_compute_share.py::test_equal_work_is_told_once",
        "unit/agent/test_compute_share.py::test_other_work_is_told_at_the_end_of_a_window",
        "unit/agent/test_compute_share.py::test_all_containers_of_a_node_are_told_together",
    ),
    "As with every write of a GPUNode": (
        "unit/runtime/binding/test_node_orders.py"
        "::test_a_gpunode_that_is_another_or_gone_is_told_at_once",
    ),
    "Nothing is planned for it": (
        "unit/state/nodes/test_agents.py::test_nothing_is_planned_anew_for_a_report",
    ),
    "An agent that starts anew begins anew": (
        "unit/agent/test_compute_share.py::test_it_is_told_after_a_minute_and_not_before",
    ),
    "It is absent where no agent runs, in the first minute": (
        "unit/agent/test_compute_share.py"
        "::test_what_the_driver_cannot_tell_any_more_is_not_told_any_more",
        "unit/runtime/status/test_protection.py"
        "::test_without_an_agent_there_is_neither_condition_nor_layer",
    ),
    "gpusched_gpujob_gpu_utilization_ratio": (
        "unit/web/test_usage_metrics.py::test_work_has_its_figures_in_base_units",
    ),
    "Nothing is throttled by it": LIMIT,
    "It was tried with the pretended driver alone": READ_ON,
    # programs that were run
    "From their own packages, in a container with a cap": (
        "native/test_clients.py::test_a_real_client_is_capped_exactly_and_told_so",
    ),
    "These figures are of the pretended driver": (
        "native/test_clients.py::test_a_real_client_is_capped_exactly_and_told_so",
    ),
    "make clients prints the table": (
        "native/test_clients.py::test_a_real_client_is_capped_exactly_and_told_so",
    ),
    **dict.fromkeys(
        (
            "cuda-bindings |",
            "cuda-bindings after libcudart |",
            "cuda-bindings async |",
            "cuda-bindings managed |",
            "cuda-bindings VMM |",
            "numba-cuda |",
            "nvidia-ml-py |",
            "gpustat |",
            "nvitop |",
        ),
        ("native/test_clients.py::test_a_real_client_is_capped_exactly_and_told_so",),
    ),
    "What could not be run: NVIDIA's runtime": (
        "native/test_clients.py::test_the_runtime_ends_in_words_on_the_pretended_driver_however_it_is_opened",
    ),
    "So CuPy, PyTorch, TensorFlow and JAX": (
        "native/test_clients.py::test_the_runtime_ends_in_words_on_the_pretended_driver_however_it_is_opened",
    ),
    "The runtime is opened as programs open it": (
        "native/test_clients.py::test_the_runtime_ends_in_words_on_the_pretended_driver_however_it_is_opened",
        "native/test_clients.py::test_a_real_client_is_capped_exactly_and_told_so",
    ),
    "Programs that export functions of the driver's names": (
        "native/test_gpucap_stub.py"
        "::test_functions_of_the_drivers_names_lead_to_the_driver_and_its_cap",
    ),
    "make clients-large does so": "a target of its own, with packages of some 8 GB",
    # what frameworks are told
    "CUPY_GPU_MEMORY_LIMIT is the cap": (
        "unit/jobs/test_framework.py::test_cupy_is_told_the_cap_in_bytes",
    ),
    "XLA_PYTHON_CLIENT_MEM_FRACTION is set": (
        "unit/jobs/test_framework.py"
        "::test_jax_is_told_a_fraction_only_of_a_total_that_is_the_whole_device",
    ),
    "Behind the interposer the total is the cap": (
        "unit/jobs/test_framework.py::test_jax_keeps_its_own_value_where_the_library_holds_the_cap",
        "native/test_gpucap_views.py::test_views_show_the_cap",
    ),
    "With gpuMemory the fraction depends": (
        "unit/jobs/test_framework.py"
        "::test_jax_is_told_a_fraction_only_of_a_total_that_is_the_whole_device",
    ),
    "GPU_MEMORY_LIMIT_MIB, and /etc": (
        "e2e/test_caps.py::test_a_change_of_the_annotation_changes_the_cap_of_a_running_program",
        "native/test_gpucap_limits.py::test_a_live_change_up_and_down",
    ),
    "A value of your own for the first two": (
        "unit/jobs/test_framework.py"
        "::test_any_value_of_the_users_stands_where_the_library_holds_the_cap",
    ),
    "With isolation: framework it stands": (
        "unit/jobs/test_framework.py::test_without_the_library_only_a_lower_value_stands",
        "unit/jobs/test_framework.py::test_a_lower_fraction_of_the_users_stands",
        "unit/jobs/test_framework.py::test_whole_gpus_are_the_users_own",
    ),
    "CuPy's limit for a fraction": (
        "unit/jobs/test_framework.py"
        "::test_without_the_library_the_cap_of_a_fraction_is_not_known_and_ours_wins",
    ),
    # how to opt out
    "One job: spec.isolation: framework": (
        "e2e/test_caps.py::test_a_job_that_opts_out_is_told_its_cap_and_nothing_is_loaded",
    ),
    "It is needed where an image brings": (
        "api/test_cap_delivery.py::test_a_preload_file_of_ones_own_is_refused_with_the_way_out",
    ),
    "Nothing of ours is then put into the pod": (
        "api/test_cap_delivery.py::test_a_job_can_do_without",
        "unit/jobs/test_cap.py::test_without_the_image_nothing_of_it_is_rendered",
    ),
    "The installation's default": (
        "unit/runtime/jobs/test_acceptance.py::test_the_library_is_delivered_where_job_or_else_installation_say_so",
    ),
    "Altogether: isolation.interposer": (
        "unit/runtime/jobs/test_acceptance.py::test_a_layer_that_is_switched_off_is_not_promised",
    ),
    "Where the driver enforces caps, it does so": (
        "unit/agent/test_isolation.py::test_the_layer_in_place",
    ),
    # what the agent may do
    "It sees the processes of its node": (
        f"{CHART}::has two capabilities, the processes of the node, and nothing else of it",
    ),
    "In the API it may write the GPUNode": (
        "api/admission/test_agent_writes.py::test_it_writes_nothing_of_another",
        "api/admission/test_agent_writes.py::test_it_reads_nothing_at_all",
        "api/admission/test_agent_writes.py::test_it_has_no_other_right",
    ),
    "What it must know of its node": (
        "unit/runtime/binding/test_node_orders.py"
        "::test_an_agent_is_told_of_the_pods_of_its_own_node_alone",
        "api/admission/test_agent_writes.py"
        "::test_nobody_but_the_operator_tells_an_agent_what_to_do",
    ),
    "After uninstalling it delete the GPUNodes": (
        "unit/state/nodes/test_agents.py"
        "::test_a_silent_agent_closes_its_node_and_what_runs_there_stays",
        "unit/state/nodes/test_agents.py::test_everything_is_forgotten_with_the_gpunode",
    ),
    "Where pods run that were placed by a GPUNode": (
        "api/test_lost_gpunode.py"
        "::test_without_a_gpunode_the_labels_count_again_once_nobody_holds_what_it_named",
        "unit/state/nodes/test_unlisted.py"
        "::test_a_node_without_its_gpunode_is_closed_while_pods_hold_what_it_named",
    ),
    # what it costs
    "An init container (it copies one file": (
        "unit/jobs/test_cap.py::test_the_init_container_comes_first_and_is_restricted",
    ),
    "The init container asks for what the first": (
        "unit/jobs/test_cap.py::test_what_the_pod_takes_of_its_node_does_not_change",
        "unit/jobs/test_cap.py::test_the_quality_of_service_stays",
        "api/test_cap_delivery.py::test_quotas_and_the_quality_of_service_do_not_notice",
        "api/test_cap_delivery.py::test_the_restricted_pod_security_level_accepts_what_is_rendered",
    ),
    "Its image, chart value isolation.image": (
        "unit/jobs/test_cap.py::test_an_empty_pull_policy_is_left_to_the_cluster",
    ),
    # programs that go around the library, and what is charged late
    "Programs that go around it: The driver is known by what it exports": (
        "native/test_gpucap_loaded.py::test_the_driver_under_another_name_is_hooked",
        "native/test_gpucap_loaded.py::test_a_library_that_opens_a_copy_is_held_too",
    ),
    "dlopen with RTLD_DEEPBIND and dlmopen are corrected for it": (
        "native/test_gpucap_resolution.py::test_the_driver_by_its_name_is_hooked_however_it_is_loaded",
        "native/test_gpucap_loaded.py"
        "::test_a_library_that_finds_the_driver_by_itself_does_not_get_it_past_the_cap",
        "native/test_gpucap_resolution.py"
        "::test_a_library_that_brings_the_driver_with_it_does_not_get_it_past_the_cap",
        "native/test_gpucap_loaded.py::test_all_other_libraries_are_loaded_apart_as_was_asked_for",
    ),
    "A library that looks its functions up by dlvsym": LIMIT,
    "What it takes is charged to its container: as a context's cost": (
        "unit/agent/test_trueup.py::test_a_context_that_grew_is_seen_after_three_looks",
        "unit/agent/test_trueup.py::test_the_context_is_what_nvml_shows_above_the_allocations",
        "native/test_agent_unslotted.py::test_who_calls_again_is_charged_once",
    ),
    "The others of the container get what is left of the cap": (
        "native/test_agent_unslotted.py::test_the_others_get_what_is_left",
    ),
    "Until then they may take the whole cap": LIMIT,
    "The container, above the cap, is reported at the third look": (
        "native/test_agent_look.py"
        "::test_who_gets_past_the_library_is_called_unprotected_within_three_looks",
    ),
    "Where nothing was measured on the GPU it is 512 MiB": (
        "native/test_gpucap_contexts.py"
        "::test_without_a_figure_that_can_be_true_the_usual_one_is_charged",
        "native/test_gpucap_contexts.py"
        "::test_what_the_agent_measured_of_one_process_is_charged_for_another",
        "native/test_caps_programs.py"
        "::test_programs_whose_contexts_nobody_measured_are_never_above_their_cap",
    ),
    "Meanwhile contexts of the container are made": (
        "native/test_gpucap_contexts.py::test_twenty_that_begin_at_once_keep_what_fits",
    ),
    "If more is in use than one context and what": (
        "native/test_gpucap_contexts.py"
        "::test_what_a_neighbour_holds_is_charged_to_no_first_context",
        "native/test_gpucap_contexts.py::test_beside_a_neighbour_the_second_context_tells_what_one_takes",
    ),
    "What others take while a context is made looks like": (
        "native/test_gpucap_contexts.py"
        "::test_a_process_after_another_is_not_charged_what_a_neighbour_took_meanwhile",
        "native/test_gpucap_contexts.py"
        "::test_where_nobody_measured_the_first_context_says_what_a_small_cap_holds",
    ),
    "The variables of a module count before it is loaded": (
        "native/test_gpucap_modules.py::test_forty_modules_of_500_mib_do_not_get_past_the_cap",
        "native/test_gpucap_modules.py"
        "::test_an_image_that_is_compressed_is_measured_and_unloaded_again",
    ),
    "Code is charged when the agent has measured it": (
        "native/test_gpucap_views.py::test_no_more_modules_at_the_cap",
    ),
    "What a dead process held: A process that forked": NVIDIAS,
    "The container stays charged for it so long": (
        "native/test_gpucap_shared.py"
        "::test_what_a_killed_process_held_is_charged_while_its_child_has_its_descriptors",
        "native/test_caps_programs.py::test_what_a_dead_process_held_stays_and_is_charged"
        "_while_a_forked_child_has_its_descriptors",
        "native/test_gpu_check.py::test_what_a_child_keeps_of_one_that_was_killed_is_charged",
    ),
    "End the children first, or let them close": READ_ON,
    "A child that closes the driver's alone": LIMIT,
    "Memory that is handed on: What is exported": (
        "native/test_gpucap_shared.py::test_a_descriptor_keeps_the_memory_charged_wherever_it_is",
        "native/test_gpucap_shared.py::test_who_holds_it_after_its_maker_pays",
        "native/test_gpucap_shared.py::test_what_is_imported_where_it_was_made_is_charged_once",
        "native/test_gpucap_shared.py::test_it_goes_from_one_to_the_next_and_is_free_after_the_last",
    ),
    "To nobody: what only descriptors keep": (
        "native/test_caps_programs.py"
        "::test_what_its_maker_let_go_of_and_forked_children_alone_keep_is_charged_to_nobody",
    ),
    "An allocation below 1 MiB that has an IPC": (
        "native/test_gpucap_shared.py"
        "::test_a_small_allocation_that_others_have_open_keeps_its_page_charged",
    ),
    "What another container made is charged there": (
        "native/test_gpucap_shared.py::test_memory_of_another_container_is_its_own",
    ),
    "That the real driver's descriptors take the locks": NVIDIAS,
}
