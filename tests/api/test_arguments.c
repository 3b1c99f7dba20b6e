/* Every public function that returns a status refuses a missing argument with TIDE_E_ARGUMENT and a text, whichever it is
 * and before it looks at any other; and so does each refuse options of a size that it cannot know and values that make no
 * sense. tests/api/test_complete.sh sees to it that no function is left out of the table. */
#include "support/test.h"

#include <math.h>

#include <tidemark/tidemark.h>

/* Stands for an argument that is there; nobody looks at it, or finds zeros. */
static _Alignas(64) unsigned char zeros[1 << 16];
#define SOME ((void *)zeros)

static uint32_t n_wrong;

static void check(const char *call, tide_status status) {
    if (status == TIDE_E_ARGUMENT && tide_last_error()[0]) return;
    print_error("%s: %s\n", call, tide_status_name(status));
    n_wrong++;
}
#define CALL(call) check(#call, call)

static void test_missing_arguments(void **state) {
    (void)state;
    n_wrong = 0;
    CALL(tide_cluster_load(NULL, SOME));
    CALL(tide_cluster_load("8xa100", NULL));
    CALL(tide_cluster_machine(NULL, SOME, 0, SOME));
    CALL(tide_cluster_machine(SOME, NULL, 0, SOME));
    CALL(tide_cluster_machine(SOME, SOME, 0, NULL));
    CALL(tide_program_split(NULL, 2, false, SOME));
    CALL(tide_program_split(SOME, 2, false, NULL));
    CALL(tide_plan_create_in_parts(NULL, SOME, SOME, 2, NULL, SOME, SOME));
    CALL(tide_plan_create_in_parts(SOME, NULL, SOME, 2, NULL, SOME, SOME));
    CALL(tide_plan_create_in_parts(SOME, SOME, NULL, 2, NULL, SOME, SOME));
    CALL(tide_plan_create_in_parts(SOME, SOME, SOME, 2, NULL, NULL, SOME));
    CALL(tide_plan_create_in_parts(SOME, SOME, SOME, 2, NULL, SOME, NULL));
    CALL(tide_device_open(NULL, SOME, SOME));
    CALL(tide_device_open(SOME, SOME, NULL));
    CALL(tide_net_open(SOME, NULL));
    CALL(tide_net_send(NULL, 0, 0, SOME, 1, NULL, NULL, SOME));
    CALL(tide_net_receive(NULL, 0, 0, SOME, 1, NULL, NULL, SOME));
    CALL(tide_net_wait(NULL, (tide_net_ticket){SOME}));
    CALL(tide_net_wait(SOME, (tide_net_ticket){NULL}));
    CALL(tide_net_barrier(NULL));
    CALL(tide_net_broadcast(NULL, 0, SOME, 1));
    CALL(tide_net_broadcast(SOME, 0, NULL, 1));
    CALL(tide_net_allgather(NULL, SOME, 1, SOME));
    CALL(tide_net_allgather(SOME, NULL, 1, SOME));
    CALL(tide_net_allgather(SOME, SOME, 1, NULL));
    CALL(tide_net_among(NULL, 1));
    CALL(tide_lender_open(NULL, SOME, SOME));
    CALL(tide_lender_open(SOME, NULL, SOME));
    CALL(tide_lender_open(SOME, SOME, NULL));
    CALL(tide_lender_close(NULL));
    CALL(tide_loan_return(NULL));
    CALL(tide_loan_return(SOME));
    CALL(tide_machine_measure_loan(NULL, 1, SOME));
    CALL(tide_machine_measure_loan(SOME, 1, NULL));
    CALL(tide_machine_measure_peers(NULL, 2, SOME));
    CALL(tide_machine_measure_peers(SOME, 2, NULL));
    CALL(tide_device_get_info(NULL, SOME));
    CALL(tide_device_get_info(SOME, NULL));
    CALL(tide_device_trust(NULL));
    CALL(tide_arena_create(NULL, 0, SOME));
    CALL(tide_arena_create(SOME, 0, NULL));
    CALL(tide_queue_create(NULL, 0, SOME));
    CALL(tide_queue_create(SOME, 0, NULL));
    CALL(tide_queue_sync(NULL));
    CALL(tide_queue_check(NULL));
    CALL(tide_event_create(NULL, SOME));
    CALL(tide_event_create(SOME, NULL));
    CALL(tide_event_record(NULL, SOME));
    CALL(tide_event_record(SOME, NULL));
    CALL(tide_event_wait(NULL, SOME));
    CALL(tide_event_wait(SOME, NULL));
    CALL(tide_event_query(NULL, SOME));
    CALL(tide_event_query(SOME, NULL));
    CALL(tide_event_sync(NULL));
    CALL(tide_event_elapsed(NULL, SOME, SOME));
    CALL(tide_event_elapsed(SOME, NULL, SOME));
    CALL(tide_event_elapsed(SOME, SOME, NULL));
    CALL(tide_queue_launch(NULL, NULL, SOME, 0));
    CALL(tide_copy_out(NULL, SOME, 0, 0, (tide_io){0}));
    CALL(tide_copy_out(SOME, NULL, 0, 0, (tide_io){0}));
    CALL(tide_copy_in(NULL, SOME, 0, 0, (tide_io){0}));
    CALL(tide_copy_in(SOME, NULL, 0, 0, (tide_io){0}));
    CALL(tide_copy_within(NULL, SOME, 0, 0, 0));
    CALL(tide_copy_within(SOME, NULL, 0, 0, 0));
    CALL(tide_kernel_create(NULL, SOME, SOME));
    CALL(tide_kernel_create(SOME, NULL, SOME));
    CALL(tide_kernel_create(SOME, SOME, NULL));
    CALL(tide_kernel_get_info(NULL, SOME));
    CALL(tide_kernel_get_info(SOME, NULL));
    CALL(tide_kernel_enqueue(NULL, 0, SOME, SOME, SOME, 0, SOME));
    CALL(tide_kernel_enqueue(SOME, 0, NULL, SOME, SOME, 0, SOME));
    CALL(tide_kernel_enqueue(SOME, 0, SOME, NULL, SOME, 0, SOME));
    CALL(tide_kernel_enqueue(SOME, 0, SOME, SOME, NULL, 0, SOME));
    CALL(tide_operand_pack(NULL, 0, SOME, SOME));
    CALL(tide_operand_pack(SOME, 0, NULL, SOME));
    CALL(tide_operand_pack(SOME, 0, SOME, NULL));
    CALL(tide_operand_unpack(NULL, 0, SOME, SOME));
    CALL(tide_operand_unpack(SOME, 0, NULL, SOME));
    CALL(tide_operand_unpack(SOME, 0, SOME, NULL));
    CALL(tide_operand_piece(NULL, 0, 0, 0, SOME));
    CALL(tide_operand_piece(SOME, 0, 0, 0, NULL));
    CALL(tide_piece_pack(NULL, 0, SOME, SOME, SOME));
    CALL(tide_piece_pack(SOME, 0, NULL, SOME, SOME));
    CALL(tide_piece_pack(SOME, 0, SOME, NULL, SOME));
    CALL(tide_piece_pack(SOME, 0, SOME, SOME, NULL));
    CALL(tide_piece_unpack(NULL, 0, SOME, SOME, SOME));
    CALL(tide_piece_unpack(SOME, 0, NULL, SOME, SOME));
    CALL(tide_piece_unpack(SOME, 0, SOME, NULL, SOME));
    CALL(tide_piece_unpack(SOME, 0, SOME, SOME, NULL));
    CALL(tide_file_open(NULL, SOME));
    CALL(tide_file_open(SOME, NULL));
    CALL(tide_file_write(NULL, SOME, 0));
    CALL(tide_file_check(NULL, 0));
    CALL(tide_heap_create(NULL, SOME));
    CALL(tide_heap_create(SOME, NULL));
    CALL(tide_heap_allocate(NULL, 0, SOME, SOME));
    CALL(tide_heap_allocate(SOME, 0, NULL, SOME));
    CALL(tide_heap_allocate(SOME, 0, SOME, NULL));
    CALL(tide_heap_borrow(NULL, 0, 0, SOME));
    CALL(tide_heap_borrow(SOME, 0, 0, NULL));
    CALL(tide_heap_rest(NULL));
    CALL(tide_source_create(NULL));
    CALL(tide_source_add(NULL, 0, SOME, 0, 0, 0));
    CALL(tide_source_add(SOME, 0, NULL, 0, 0, 0));
    CALL(tide_source_read(NULL, 0, 0, SOME, 0));
    CALL(tide_source_read(SOME, 0, 0, NULL, 0));
    CALL(tide_heap_pin(NULL, 0, SOME));
    CALL(tide_heap_pin(SOME, 0, NULL));
    CALL(tide_machine_validate(NULL));
    CALL(tide_machine_add_peers(NULL, 1, 1));
    CALL(tide_machine_add_lent(NULL, 1, 1, 1, 1));
    CALL(tide_machine_load(NULL, SOME));
    CALL(tide_machine_load(SOME, NULL));
    CALL(tide_machine_read_memory(NULL, 0, SOME, SOME));
    CALL(tide_machine_read_memory(SOME, 0, SOME, NULL));
    CALL(tide_machine_write(NULL, SOME));
    CALL(tide_machine_write_memory(NULL, SOME, SOME));
    CALL(tide_model_create(NULL, SOME, SOME));
    CALL(tide_model_create(SOME, SOME, NULL));
    CALL(tide_step_create(NULL, SOME, SOME));
    CALL(tide_step_create(SOME, SOME, NULL));
    CALL(tide_buffers_create(NULL, 1, SOME));
    CALL(tide_buffers_create(SOME, 1, NULL));
    CALL(tide_buffers_read_csv(NULL, SOME));
    CALL(tide_buffers_read_csv(SOME, NULL));
    CALL(tide_buffers_of_program(NULL, SOME, SOME));
    CALL(tide_buffers_of_program(SOME, NULL, SOME));
    CALL(tide_buffers_of_program(SOME, SOME, NULL));
    CALL(tide_buffers_place(NULL, SOME, SOME, SOME));
    CALL(tide_buffers_place(SOME, SOME, NULL, SOME));
    CALL(tide_buffers_place(SOME, SOME, SOME, NULL));
    CALL(tide_plan_settle_budgets(SOME, NULL, SOME));
    CALL(tide_plan_settle_budgets(SOME, SOME, NULL));
    CALL(tide_plan_create(NULL, SOME, SOME, SOME, SOME));
    CALL(tide_plan_create(SOME, NULL, SOME, SOME, SOME));
    CALL(tide_plan_create(SOME, SOME, NULL, SOME, SOME));
    CALL(tide_plan_create(SOME, SOME, SOME, SOME, NULL));
    CALL(tide_plan_fits(NULL, SOME, SOME, SOME));
    CALL(tide_plan_fits(SOME, NULL, SOME, SOME));
    CALL(tide_plan_fits(SOME, SOME, NULL, SOME));
    CALL(tide_plan_fits(SOME, SOME, SOME, NULL));
    CALL(tide_plan_frontier(NULL, SOME, SOME, SOME, 0, SOME, SOME));
    CALL(tide_plan_frontier(SOME, NULL, SOME, SOME, 0, SOME, SOME));
    CALL(tide_plan_frontier(SOME, SOME, NULL, SOME, 0, SOME, SOME));
    CALL(tide_plan_frontier(SOME, SOME, SOME, NULL, 0, SOME, SOME));
    CALL(tide_plan_frontier(SOME, SOME, SOME, SOME, 0, SOME, NULL));
    CALL(tide_plan_bound(NULL, SOME, SOME, SOME));
    CALL(tide_plan_bound(SOME, NULL, SOME, SOME));
    CALL(tide_plan_bound(SOME, SOME, NULL, SOME));
    CALL(tide_plan_bound(SOME, SOME, SOME, NULL));
    CALL(tide_plan_smallest(NULL, SOME, SOME, 0, SOME));
    CALL(tide_plan_smallest(SOME, NULL, SOME, 0, SOME));
    CALL(tide_plan_smallest(SOME, SOME, NULL, 0, SOME));
    CALL(tide_plan_smallest(SOME, SOME, SOME, 0, NULL));
    CALL(tide_plan_read(NULL, SOME));
    CALL(tide_plan_read(SOME, NULL));
    CALL(tide_plan_read_memory(NULL, 0, SOME, SOME));
    CALL(tide_plan_read_memory(SOME, 0, SOME, NULL));
    CALL(tide_plan_write(NULL, SOME));
    CALL(tide_plan_write(SOME, NULL));
    CALL(tide_plan_verify(NULL, SOME, SOME, SOME, SOME));
    CALL(tide_plan_verify(SOME, NULL, SOME, SOME, SOME));
    CALL(tide_plan_verify(SOME, SOME, NULL, SOME, SOME));
    CALL(tide_plan_simulate(NULL, SOME, SOME, SOME));
    CALL(tide_plan_simulate(SOME, NULL, SOME, SOME));
    CALL(tide_plan_simulate(SOME, SOME, NULL, SOME));
    CALL(tide_plan_simulate(SOME, SOME, SOME, NULL));
    CALL(tide_timeline_create(NULL, SOME, SOME, SOME, SOME, SOME));
    CALL(tide_timeline_create(SOME, NULL, SOME, SOME, SOME, SOME));
    CALL(tide_timeline_create(SOME, SOME, NULL, SOME, SOME, SOME));
    CALL(tide_timeline_create(SOME, SOME, SOME, NULL, SOME, SOME));
    CALL(tide_timeline_create(SOME, SOME, SOME, SOME, NULL, SOME));
    CALL(tide_timeline_create(SOME, SOME, SOME, SOME, SOME, NULL));
    CALL(tide_pool_create(SOME, NULL));
    CALL(tide_pool_malloc(NULL, 0, SOME));
    CALL(tide_pool_malloc(SOME, 0, NULL));
    CALL(tide_pool_free(NULL, SOME));
    CALL(tide_program_builder_create(NULL, 0, SOME));
    CALL(tide_program_builder_create(SOME, 0, NULL));
    CALL(tide_program_builder_tensor(NULL, SOME, SOME));
    CALL(tide_program_builder_tensor(SOME, NULL, SOME));
    CALL(tide_program_builder_op(NULL, SOME, SOME));
    CALL(tide_program_builder_op(SOME, NULL, SOME));
    CALL(tide_program_builder_carry(NULL, (tide_carry){0}));
    CALL(tide_program_builder_keep(NULL, 0));
    CALL(tide_program_builder_finish(NULL, SOME));
    CALL(tide_program_builder_finish(SOME, NULL));
    CALL(tide_program_match_messages(NULL, 1));
    CALL(tide_program_with_costs(NULL, SOME, SOME));
    CALL(tide_program_with_costs(SOME, NULL, SOME));
    CALL(tide_program_with_costs(SOME, SOME, NULL));
    CALL(tide_program_read(NULL, SOME));
    CALL(tide_program_read(SOME, NULL));
    CALL(tide_program_read_memory(NULL, 0, SOME, SOME));
    CALL(tide_program_read_memory(SOME, 0, SOME, NULL));
    CALL(tide_program_write(NULL, SOME));
    CALL(tide_program_write(SOME, NULL));
    CALL(tide_liveness_create(NULL, SOME));
    CALL(tide_liveness_create(SOME, NULL));
    CALL(tide_liveness_gaps(NULL, SOME, SOME));
    CALL(tide_liveness_gaps(SOME, NULL, SOME));
    CALL(tide_liveness_gaps(SOME, SOME, NULL));
    CALL(tide_program_unroll(NULL, 0, SOME));
    CALL(tide_program_unroll(SOME, 0, NULL));
    CALL(tide_program_unroll_needed(NULL, SOME));
    CALL(tide_program_unroll_needed(SOME, NULL));
    CALL(tide_program_import(NULL, SOME, SOME));
    CALL(tide_program_import(SOME, SOME, NULL));
    CALL(tide_program_import_stats(NULL, SOME, SOME, SOME));
    CALL(tide_program_import_stats(SOME, SOME, NULL, SOME));
    CALL(tide_replay_file(NULL, SOME, SOME, SOME));
    CALL(tide_replay_file(SOME, SOME, NULL, SOME));
    CALL(tide_record_read_memory(NULL, 0, SOME, SOME));
    CALL(tide_record_read_memory(SOME, 0, SOME, NULL));
    CALL(tide_record_begin(NULL, SOME, SOME));
    CALL(tide_record_begin(SOME, NULL, SOME));
    CALL(tide_record_begin(SOME, SOME, NULL));
    CALL(tide_record_write(NULL, 0, SOME, 0, SOME));
    CALL(tide_record_write(SOME, 0, NULL, 0, SOME));
    CALL(tide_record_write(SOME, 0, SOME, 0, NULL));
    CALL(tide_record_write_ranks(NULL, 1, SOME, 0, SOME));
    CALL(tide_record_write_ranks(SOME, 0, SOME, 0, SOME));
    CALL(tide_record_write_ranks(SOME, 1, NULL, 0, SOME));
    CALL(tide_record_write_ranks(SOME, 1, SOME, 0, NULL));
    CALL(tide_report_create(NULL, SOME, SOME, SOME, SOME));
    CALL(tide_report_create(SOME, NULL, SOME, SOME, SOME));
    CALL(tide_report_create(SOME, SOME, NULL, SOME, SOME));
    CALL(tide_report_create(SOME, SOME, SOME, SOME, NULL));
    CALL(tide_report_add_measured(NULL, SOME));
    CALL(tide_report_add_measured(SOME, NULL));
    CALL(tide_report_add_compared(NULL, SOME));
    CALL(tide_report_add_compared(SOME, NULL));
    CALL(tide_report_write_html(NULL, SOME));
    CALL(tide_report_write_html(SOME, NULL));
    CALL(tide_report_write_perfetto(NULL, SOME));
    CALL(tide_report_write_perfetto(SOME, NULL));
    CALL(tide_report_write_memory_viz(NULL, SOME));
    CALL(tide_report_write_memory_viz(SOME, NULL));
    CALL(tide_report_write_terminal(NULL, SOME, SOME));
    CALL(tide_report_write_terminal(SOME, SOME, NULL));
    CALL(tide_call_launch(NULL, NULL, SOME));
    CALL(tide_run_budgets(NULL, SOME, SOME));
    CALL(tide_run_budgets(SOME, NULL, SOME));
    CALL(tide_run_budgets(SOME, SOME, NULL));
    CALL(tide_run_create(NULL, SOME));
    CALL(tide_run_create(SOME, NULL));
    CALL(tide_run_write(NULL, 0, SOME, 0));
    CALL(tide_run_write(SOME, 0, NULL, 0));
    CALL(tide_run_read(NULL, 0, SOME, 0));
    CALL(tide_run_read(SOME, 0, NULL, 0));
    CALL(tide_run_write_part(NULL, 0, 0, SOME, 0));
    CALL(tide_run_write_part(SOME, 0, 0, NULL, 0));
    CALL(tide_run_read_part(NULL, 0, 0, SOME, 0));
    CALL(tide_run_read_part(SOME, 0, 0, NULL, 0));
    CALL(tide_run_rest(NULL));
    CALL(tide_run_watch(NULL, 0, SOME, 0));
    CALL(tide_run_watch(SOME, 0, NULL, 0));
    CALL(tide_run_follow(NULL, SOME));
    CALL(tide_run_follow(SOME, NULL));
    CALL(tide_plan_remember(NULL, SOME, SOME, SOME, SOME));
    CALL(tide_plan_remember(SOME, NULL, SOME, SOME, SOME));
    CALL(tide_plan_remember(SOME, SOME, NULL, SOME, SOME));
    CALL(tide_plan_remember(SOME, SOME, SOME, NULL, SOME));
    CALL(tide_plan_remember(SOME, SOME, SOME, SOME, NULL));
    CALL(tide_run_step(NULL, SOME, SOME));
    CALL(tide_run_step(SOME, NULL, SOME));
    CALL(tide_run_step_traced(NULL, SOME, SOME, SOME));
    CALL(tide_run_step_traced(SOME, NULL, SOME, SOME));
    CALL(tide_run_step_traced(SOME, SOME, SOME, NULL));
    CALL(tide_run_pull_begin(NULL));
    CALL(tide_run_pull(NULL, SOME));
    CALL(tide_run_pull(SOME, NULL));
    CALL(tide_run_pull_end(NULL, SOME));
    CALL(tide_run_pull_stop(NULL, 0));
    CALL(tide_run_rescue(NULL, 0, SOME, 0));
    CALL(tide_run_rescue(SOME, 0, NULL, 0));
    CALL(tide_machine_measure(NULL, SOME, SOME));
    CALL(tide_machine_measure(SOME, SOME, NULL));
    CALL(tide_session_create(NULL, SOME));
    CALL(tide_session_create(SOME, NULL));
    CALL(tide_session_state(NULL, SOME, SOME));
    CALL(tide_session_state(SOME, NULL, SOME));
    CALL(tide_session_state(SOME, SOME, NULL));
    CALL(tide_session_write(NULL, 0, SOME, 0));
    CALL(tide_session_write(SOME, 0, NULL, 0));
    CALL(tide_session_read(NULL, 0, SOME, 0));
    CALL(tide_session_read(SOME, 0, NULL, 0));
    CALL(tide_session_write_part(NULL, 0, 0, SOME, 0));
    CALL(tide_session_write_part(SOME, 0, 0, NULL, 0));
    CALL(tide_session_read_part(NULL, 0, 0, SOME, 0));
    CALL(tide_session_read_part(SOME, 0, 0, NULL, 0));
    CALL(tide_session_set_budget(NULL, 0));
    CALL(tide_session_begin(NULL, SOME));
    CALL(tide_session_begin(SOME, NULL));
    CALL(tide_session_input(NULL, SOME, SOME, SOME));
    CALL(tide_session_input(SOME, NULL, SOME, SOME));
    CALL(tide_session_input(SOME, SOME, NULL, SOME));
    CALL(tide_session_input(SOME, SOME, SOME, NULL));
    CALL(tide_session_tensor(NULL, SOME, SOME));
    CALL(tide_session_tensor(SOME, NULL, SOME));
    CALL(tide_session_tensor(SOME, SOME, NULL));
    CALL(tide_session_op(NULL, SOME, NULL, SOME));
    CALL(tide_session_op(SOME, NULL, NULL, SOME));
    CALL(tide_session_release(NULL, 0));
    CALL(tide_session_carry(NULL, 0, 0));
    CALL(tide_session_end(NULL, SOME));
    CALL(tide_data_digits(NULL, 0, SOME));
    CALL(tide_data_digits(SOME, 0, NULL));
    CALL(tide_data_text(NULL, 0, SOME));
    CALL(tide_data_text(SOME, 0, NULL));
    CALL(tide_data_files_open(NULL, 0, 0, SOME));
    CALL(tide_data_files_open(SOME, 0, 0, NULL));
    CALL(tide_data_files_open_tokens(NULL, SOME, 1, 0, SOME));
    CALL(tide_data_files_open_tokens(SOME, NULL, 1, 0, SOME));
    CALL(tide_data_files_open_tokens(SOME, SOME, 1, 0, NULL));
    CALL(tide_tokenizer_open(NULL, SOME));
    CALL(tide_tokenizer_open(SOME, NULL));
    CALL(tide_tokenizer_encode(NULL, SOME, 1, SOME, SOME));
    CALL(tide_tokenizer_encode(SOME, SOME, 1, NULL, SOME));
    CALL(tide_tokenizer_encode(SOME, SOME, 1, SOME, NULL));
    CALL(tide_trainer_create(NULL, SOME, SOME));
    CALL(tide_trainer_create(SOME, SOME, NULL));
    CALL(tide_trainer_step(NULL, SOME, SOME));
    CALL(tide_trainer_step(SOME, NULL, SOME));
    CALL(tide_trainer_step_timed(NULL, SOME, SOME, SOME));
    CALL(tide_trainer_step_timed(SOME, NULL, SOME, SOME));
    CALL(tide_trainer_step_timed(SOME, SOME, SOME, NULL));
    CALL(tide_trainer_step_traced(NULL, SOME, SOME, SOME));
    CALL(tide_trainer_step_traced(SOME, NULL, SOME, SOME));
    CALL(tide_trainer_step_traced(SOME, SOME, SOME, NULL));
    CALL(tide_trainer_test(NULL, SOME, 0, SOME));
    CALL(tide_trainer_test(SOME, NULL, 0, SOME));
    CALL(tide_trainer_test(SOME, SOME, 0, NULL));
    CALL(tide_trainer_evaluate(NULL, SOME, 0, SOME));
    CALL(tide_trainer_evaluate(SOME, NULL, 0, SOME));
    CALL(tide_trainer_evaluate(SOME, SOME, 0, NULL));
    CALL(tide_trainer_hash(NULL, SOME));
    CALL(tide_trainer_hash(SOME, NULL));
    CALL(tide_trainer_save(NULL, SOME));
    CALL(tide_trainer_save(SOME, NULL));
    CALL(tide_trainer_load(NULL, SOME));
    CALL(tide_trainer_load(SOME, NULL));
    CALL(tide_checkpoint_total_steps(NULL, SOME));
    CALL(tide_checkpoint_total_steps(SOME, NULL));
    CALL(tide_trainer_load_weights(NULL, SOME, NULL));
    CALL(tide_trainer_load_weights(SOME, NULL, NULL));
    CALL(tide_trainer_save_weights(NULL, SOME));
    CALL(tide_trainer_save_weights(SOME, NULL));
    CALL(tide_picture_read(NULL, 3, 1, 1, SOME));
    CALL(tide_picture_read(SOME, 3, 1, 1, NULL));
    CALL(tide_picture_folder_open(NULL, SOME, SOME));
    CALL(tide_picture_folder_open(SOME, SOME, NULL));
    CALL(tide_predictor_create(NULL, SOME, SOME));
    CALL(tide_predictor_create(SOME, SOME, NULL));
    CALL(tide_predictor_load(NULL, SOME, NULL));
    CALL(tide_predictor_load(SOME, NULL, NULL));
    CALL(tide_predictor_run(NULL, SOME));
    CALL(tide_predictor_run(SOME, NULL));
    CALL(tide_predictor_read(NULL, 0, SOME));
    CALL(tide_predictor_read(SOME, 0, NULL));
    CALL(tide_log_report(NULL, 1, SOME));
    CALL(tide_log_report(SOME, 1, NULL));
    CALL(tide_dynamic_create(NULL, SOME));
    CALL(tide_dynamic_create(SOME, NULL));
    CALL(tide_dynamic_step(NULL, SOME, SOME, SOME, SOME, SOME));
    CALL(tide_dynamic_step(SOME, NULL, SOME, SOME, SOME, SOME));
    CALL(tide_dynamic_step(SOME, SOME, NULL, SOME, SOME, SOME));
    CALL(tide_dynamic_step(SOME, SOME, SOME, NULL, SOME, SOME));
    CALL(tide_dynamic_step(SOME, SOME, SOME, SOME, NULL, SOME));
    CALL(tide_dynamic_hash(NULL, SOME));
    CALL(tide_dynamic_hash(SOME, NULL));
    assert_int_equal(n_wrong, 0);
}

/* ---- sizes ---- */

/* One byte more than this library knows, and less than a size. */
#define SIZES(type, init, call)                 \
    do {                                        \
        type options;                           \
        init(&options);                         \
        options.size = sizeof options + 1;      \
        CALL(call);                             \
        options.size = sizeof options.size - 1; \
        CALL(call);                             \
    } while (0)

static void test_sizes(void **state) {
    (void)state;
    tide_machine machine;
    void *out = zeros;
    n_wrong = 0;
    tide_machine_init_default(&machine);
    SIZES(tide_device_options, tide_device_options_init, tide_device_open("sim", &options, out));
    SIZES(tide_heap_options, tide_heap_options_init, tide_heap_create(&options, out));
    SIZES(tide_model_options, tide_model_options_init, tide_model_create("lenet", &options, out));
    SIZES(tide_net_options, tide_net_options_init, tide_net_open(&options, out));
    SIZES(tide_plan_options, tide_plan_options_init, tide_plan_settle_budgets(NULL, &machine, &options));
    SIZES(tide_pool_options, tide_pool_options_init, tide_pool_create(&options, out));
    SIZES(tide_run_options, tide_run_options_init, tide_run_create(&options, out));
    SIZES(tide_session_options, tide_session_options_init, tide_session_create(&options, out));
    SIZES(tide_trainer_options, tide_trainer_options_init, tide_trainer_create(&options, NULL, out));
    SIZES(tide_picture_folder_options, tide_picture_folder_options_init, tide_picture_folder_open("/", &options, out));
    SIZES(tide_predictor_options, tide_predictor_options_init, tide_predictor_create(&options, NULL, out));
    SIZES(tide_dynamic_options, tide_dynamic_options_init, tide_dynamic_create(&options, out));
    SIZES(tide_measure_options, tide_measure_options_init, tide_machine_measure(out, &options, out));
    SIZES(tide_replay_options, tide_replay_options_init, tide_replay_file("/dev/null", &options, out, NULL));
    assert_int_equal(n_wrong, 0);
}

/* A caller that knows less gets the defaults for the rest. */
static void test_shorter_options(void **state) {
    (void)state;
    tide_device_options options;
    tide_device *device;
    tide_machine machine;
    tide_plan_options plan;
    tide_machine_init_default(&machine);
    tide_device_options_init(&options);
    options.size = offsetof(tide_device_options, reserve_bytes);
    options.reserve_bytes = UINT64_MAX; /* beyond what it says it has */
    assert_ok(tide_device_open("sim", &options, &device));
    tide_device_close(device);
    tide_plan_options_init(&plan);
    plan.size = offsetof(tide_plan_options, arena_budget);
    plan.arena_budget.kind = (tide_budget_kind)9;
    assert_ok(tide_plan_settle_budgets(NULL, &machine, &plan));
    assert_true(plan.size == sizeof plan && plan.budgets.arena_bytes == UINT64_MAX);
}

/* ---- values ---- */

static void test_values(void **state) {
    (void)state;
    tide_machine machine;
    tide_model *model;
    tide_device *device;
    tide_digits digits = {.channels = 1, .height = 28, .width = 28};
    tide_data data;
    tide_trainer_options o;
    tide_dynamic_options dynamic;
    tide_session_options session;
    tide_trainer *trainer = NULL;
    n_wrong = 0;
    tide_machine_init_default(&machine);
    assert_ok(tide_device_open("sim", NULL, &device));
    assert_ok(tide_model_create("lenet", NULL, &model));
    assert_ok(tide_data_digits(&digits, 16, &data));
    const float rates[] = {NAN, -0.1f, INFINITY};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        tide_trainer_options_init(&o);
        o.model = model;
        o.device = device;
        o.machine = &machine;
        o.data = &data;
        o.learning_rate = rates[i];
        CALL(tide_trainer_create(&o, NULL, &trainer));
        tide_dynamic_options_init(&dynamic);
        dynamic.learning_rate = rates[i];
        CALL(tide_dynamic_create(&dynamic, SOME));
    }
    o.learning_rate = 0.1f;
    o.mode = (tide_train_mode)7;
    CALL(tide_trainer_create(&o, NULL, &trainer));
    tide_session_options_init(&session);
    session.device = device;
    session.machine = &machine;
    session.budgets.arena_bytes = 1 << 20;
    session.effort = (tide_effort)9;
    CALL(tide_session_create(&session, SOME));
    tide_plan_options plan;
    tide_plan_options_init(&plan);
    plan.effort = (tide_effort)9;
    CALL(tide_plan_settle_budgets(NULL, &machine, &plan));
    tide_model_destroy(model);
    tide_device_close(device);
    assert_int_equal(n_wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_arguments),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_shorter_options),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
